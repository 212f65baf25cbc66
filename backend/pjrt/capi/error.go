package capi

import (
	"errors"
	"fmt"
	"strings"
)

// Code is the class of an error, as in absl::StatusCode.
type Code int32

// The codes.
const (
	OK                 Code = 0
	Cancelled          Code = 1
	Unknown            Code = 2
	InvalidArgument    Code = 3
	DeadlineExceeded   Code = 4
	NotFound           Code = 5
	AlreadyExists      Code = 6
	PermissionDenied   Code = 7
	ResourceExhausted  Code = 8
	FailedPrecondition Code = 9
	Aborted            Code = 10
	OutOfRange         Code = 11
	Unimplemented      Code = 12
	Internal           Code = 13
	Unavailable        Code = 14
	DataLoss           Code = 15
	Unauthenticated    Code = 16
)

var codeNames = []string{
	"ok", "cancelled", "unknown", "invalid argument", "deadline exceeded", "not found", "already exists", "permission denied",
	"resource exhausted", "failed precondition", "aborted", "out of range", "unimplemented", "internal", "unavailable", "data loss",
	"unauthenticated",
}

// String returns for instance "invalid argument".
func (c Code) String() string {
	if c >= 0 && int(c) < len(codeNames) {
		return codeNames[c]
	}
	return fmt.Sprintf("code %d", int32(c))
}

// Error is what a plugin answered to a call.
type Error struct {
	Call    string // the C function, such as "PJRT_Client_Create"
	Code    Code
	Message string // the plugin's; may have several lines
}

// Error is one line.
func (e *Error) Error() string {
	msg := strings.Join(strings.Fields(e.Message), " ")
	if msg == "" {
		return fmt.Sprintf("%s: %s", e.Call, e.Code)
	}
	return fmt.Sprintf("%s: %s: %s", e.Call, e.Code, msg)
}

// CodeOf returns the code of the plugin's error inside err: OK for nil, Unknown when there is none.
func CodeOf(err error) Code {
	var e *Error
	switch {
	case err == nil:
		return OK
	case errors.As(err, &e):
		return e.Code
	}
	return Unknown
}

// errClosed is the error of a method of something closed.
var errClosed = errors.New("it was closed")
