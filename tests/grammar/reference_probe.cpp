// Asks the reference build's own code, one JSON object a line on stdin, one answer a line on stdout.
// Compiled by the tests marked `oracle` and by scripts/record_grammar.py against the headers that `make oracle` unpacks.
//   {"do": "schema", "text": SCHEMA}                                       -> {"grammar": …} or {"error": …}
//   {"do": "chat", "template": T, "bos": B, "eos": E, "messages": […],     -> {"grammar", "generation_prompt", "parser"}
//    "schema": SCHEMA, "continue": bool}                                      or {"error": …}
//   {"do": "content", "parser": P, "generation_prompt": G, "text": T}      -> {"content", "reasoning"} or {"error": …}
//   {"do": "dump", "text": JSON}                                           -> {"text": …}
#include "chat.h"
#include "json-schema-to-grammar.h"
#include "json.h"
#include "log.h"
#include "peg-parser.h"

#include <iostream>
#include <string>

static common_json chat(const common_json & ask) {
    auto templates = common_chat_templates_init(nullptr, ask.at("template").get<std::string>(),
                                                ask.at("bos").get<std::string>(), ask.at("eos").get<std::string>());
    common_chat_templates_inputs inputs;
    inputs.messages = common_chat_msgs_parse_oaicompat(ask.at("messages"));
    inputs.json_schema = ask.at("schema").get<std::string>();
    inputs.use_jinja = true;
    inputs.enable_thinking = false;
    inputs.reasoning_format = COMMON_REASONING_FORMAT_DEEPSEEK;
    if (ask.at("continue").get<bool>()) {
        inputs.add_generation_prompt = false;
        inputs.continue_final_message = COMMON_CHAT_CONTINUATION_AUTO;
    }
    auto made = common_chat_templates_apply(templates.get(), inputs);
    common_json out = common_json::object();
    out["grammar"] = made.grammar;
    out["generation_prompt"] = made.generation_prompt;
    out["parser"] = made.parser;
    out["format"] = std::string(common_chat_format_name(made.format));
    return out;
}

static common_json content(const common_json & ask) {
    common_chat_parser_params params;
    params.format = COMMON_CHAT_FORMAT_PEG_NATIVE;
    params.generation_prompt = ask.at("generation_prompt").get<std::string>();
    params.parser.load(ask.at("parser").get<std::string>());
    auto message = common_chat_parse(ask.at("text").get<std::string>(), true, params);
    common_json out = common_json::object();
    out["content"] = message.content;
    out["reasoning"] = message.reasoning_content;
    return out;
}

static common_json answer(const common_json & ask) {
    auto what = ask.at("do").get<std::string>();
    if (what == "chat") {
        return chat(ask);
    }
    if (what == "content") {
        return content(ask);
    }
    auto value = common_json::parse(ask.at("text").get<std::string>());
    common_json out = common_json::object();
    if (what == "dump") {
        out["text"] = value.dump();
    } else {
        out["grammar"] = json_schema_to_grammar(value);
    }
    return out;
}

int main() {
    common_log_set_verbosity_thold(-1);
    std::string line;
    while (std::getline(std::cin, line)) {
        common_json out = common_json::object();
        try {
            out = answer(common_json::parse(line));
        } catch (const std::exception & error) {
            out["error"] = std::string(error.what());
        }
        std::cout << out.dump_safe() << std::endl;
    }
}
