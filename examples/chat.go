// Chat sends a chat request to a verified model: it streams the answer to stdout and prints the receipt's hashes to
// stderr.
//
//	CGO_CFLAGS="$(bankml capi --cflags)" CGO_LDFLAGS="$(bankml capi --libs)" go build chat.go
//	./chat MODEL.gguf MODEL.gguf.FORK.json "What is a receipt?"
package main

/*
#include <stdlib.h>
#include <bankml.h>

int onPiece(char *piece, size_t len, void *user);
*/
import "C"

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/cgo"
	"unsafe"
)

// Model is a verified, loaded model.
type Model struct{ handle *C.bankml_t }

// Open verifies the GGUF file at path against its record in fork, and loads it.
func Open(path, fork string) (*Model, error) {
	cPath, cFork := C.CString(path), C.CString(fork)
	defer C.free(unsafe.Pointer(cPath))
	defer C.free(unsafe.Pointer(cFork))
	var reason *C.char
	handle := C.bankml_open(cPath, cFork, 0, &reason)
	defer C.bankml_free(reason)
	if handle == nil {
		return nil, errors.New(C.GoString(reason))
	}
	return &Model{handle}, nil
}

// Close frees the model.
func (m *Model) Close() { C.bankml_close(m.handle) }

// Receipt has the hashes of an answer.
type Receipt struct {
	Model    string `json:"model_sha256"`
	Request  string `json:"request_sha256"`
	Response string `json:"response_sha256"`
}

// Error is a failed request; Code is one of BANKML_E_….
type Error struct {
	Code    int
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("bankml_chat returned %d: %s", e.Code, e.Message) }

//export onPiece
func onPiece(piece *C.char, size C.size_t, user unsafe.Pointer) C.int {
	write := (*(*cgo.Handle)(user)).Value().(func(string) bool)
	if write(C.GoStringN(piece, C.int(size))) {
		return 1
	}
	return 0
}

// Chat sends a request, the body of /v1/chat/completions. It calls write with each piece of the answer; write returns
// whether to continue.
func (m *Model) Chat(request []byte, write func(string) bool) (*Receipt, error) {
	cRequest := C.CString(string(request))
	defer C.free(unsafe.Pointer(cRequest))
	user := cgo.NewHandle(write)
	defer user.Delete()

	var result *C.char
	code := C.bankml_chat(m.handle, cRequest, C.bankml_piece_cb(C.onPiece), unsafe.Pointer(&user), &result)
	defer C.bankml_free(result)
	var answer struct {
		Receipt *Receipt `json:"bankml_receipt"`
		Error   struct{ Message string }
	}
	if err := json.Unmarshal([]byte(C.GoString(result)), &answer); err != nil {
		return nil, &Error{int(code), err.Error()}
	}
	if code != C.BANKML_OK {
		return nil, &Error{int(code), answer.Error.Message}
	}
	return answer.Receipt, nil
}

func run(path, fork, question string) error {
	model, err := Open(path, fork)
	if err != nil {
		return err
	}
	defer model.Close()

	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	request, err := json.Marshal(map[string]any{"max_tokens": 256, "messages": []message{{"user", question}}})
	if err != nil {
		return err
	}
	receipt, err := model.Chat(request, func(piece string) bool {
		_, err := os.Stdout.WriteString(piece)
		return err == nil
	})
	if err != nil {
		return err
	}
	fmt.Println()
	fmt.Fprintf(os.Stderr, "model_sha256 %s\nrequest_sha256 %s\nresponse_sha256 %s\n",
		receipt.Model, receipt.Request, receipt.Response)
	return nil
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintf(os.Stderr, "usage: %s MODEL.gguf FORK.json QUESTION\n", os.Args[0])
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
