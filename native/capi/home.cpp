#include "capi/home.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <filesystem>
#include <fstream>
#include <string_view>

namespace bankml::capi {
namespace {

namespace fs = std::filesystem;

const char here = 0;  // an address inside the object that holds this code

// The folders that the object's run path names.
std::vector<fs::path> run_path(const link_map &object, const fs::path &folder) {
    const char *strings = nullptr;
    std::vector<std::size_t> at;
    for (const ElfW(Dyn) *entry = object.l_ld; entry->d_tag != DT_NULL; ++entry) {
        if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char *>(entry->d_un.d_ptr);
        if (entry->d_tag == DT_RUNPATH || entry->d_tag == DT_RPATH) at.push_back(entry->d_un.d_val);
    }
    std::vector<fs::path> found;
    if (strings == nullptr) return found;
    for (const std::size_t offset : at) {
        for (std::string_view rest = strings + offset; !rest.empty();) {
            std::string one(rest.substr(0, rest.find(':')));
            rest.remove_prefix(std::min(rest.size(), one.size() + 1));
            constexpr std::string_view origin = "$ORIGIN";
            if (one.starts_with(origin)) one = folder.string() + one.substr(origin.size());
            found.emplace_back(one);
        }
    }
    return found;
}

// The value of `key` in a pyvenv.cfg.
std::string setting(const fs::path &file, std::string_view key) {
    std::ifstream lines(file);
    constexpr std::string_view blank = " \t\r";
    for (std::string line; std::getline(lines, line);) {
        const std::size_t equals = line.find('=');
        if (equals == std::string::npos) continue;
        std::string name = line.substr(0, equals), value = line.substr(equals + 1);
        name.erase(name.find_last_not_of(blank) + 1);
        value.erase(0, value.find_first_not_of(blank));
        value.erase(value.find_last_not_of(blank) + 1);
        if (name == key) return value;
    }
    return "";
}

// Fills in where the interpreter of `packages` is: in the folder that a pyvenv.cfg names, or above them, or else where it
// was when this was built.
void find_interpreter(Home &home) {
    const std::string version = "python" BANKML_PYTHON, library = "lib" + version + ".so.1.0";
    std::error_code ignored;
    fs::path prefix = BANKML_PYTHON_PREFIX;
    home.executable = prefix / "bin" / version;
    for (fs::path folder = home.packages; folder.has_relative_path(); folder = folder.parent_path()) {
        if (fs::exists(folder / "pyvenv.cfg", ignored)) {
            home.executable = folder / "bin" / "python";
            prefix = fs::path(setting(folder / "pyvenv.cfg", "home")).parent_path();
            break;
        }
        if (fs::exists(folder / "lib" / version / "os.py", ignored)) {
            home.executable = folder / "bin" / version;
            prefix = folder;
            break;
        }
    }
    home.libraries = {prefix / "lib" / library, prefix / "lib64" / library, library};
    home.libraries.push_back(fs::path(BANKML_PYTHON_LIBDIR) / library);
}

}  // namespace

bool find_home(Home &home, std::string &why) {
    Dl_info info = {};
    void *extra = nullptr;
    if (dladdr1(&here, &info, &extra, RTLD_DL_LINKMAP) == 0 || info.dli_fname == nullptr) {
        why = "the system's loader does not know where libbankml is";
        return false;
    }
    std::error_code error;
    const auto &object = *static_cast<const link_map *>(extra);
    // A program's own name may be empty, or relative to where it was started.
    const bool program = object.l_name == nullptr || *object.l_name == '\0';
    const fs::path file = fs::canonical(program ? "/proc/self/exe" : info.dli_fname, error);
    std::vector<fs::path> folders = run_path(object, file.parent_path());
    folders.insert(folders.begin(), file.parent_path());
    for (const fs::path &folder : folders) {
        const fs::path package = fs::canonical(folder, error).parent_path();
        if (error || !fs::exists(package / "include" / "bankml.h", error) || package.filename() != "bankml") continue;
        home.packages = package.parent_path();
        find_interpreter(home);
        return true;
    }
    why = "there is no bankml package around " + file.string() + ": link with $(bankml capi --libs)";
    return false;
}

}  // namespace bankml::capi
