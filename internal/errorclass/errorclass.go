// Package errorclass holds the error classes that every application has: `transient`,
// `deadlock`, `unique` and others.
//
// It imports core/exception, internal/dberr and the standard library.
package errorclass

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// Stock returns the shipped matchers: for a registry, before an application's own.
func Stock() []exception.Matcher {
	return slices.Concat(transient(), constraint(), invalidItem(), []exception.Matcher{
		{Name: "io", Doc: "A file could not be read or written, by the job or by the database: missing, no permission, disk full.", Match: isIO},
		{Name: "sqlstate", Doc: "An error of PostgreSQL with this code: `sqlstate(40001)`. An `x` stands for any character: `sqlstate(22xxx)`.", New: sqlState, Wide: wide},
	})
}

func transient() []exception.Matcher {
	const parent = "transient"
	return []exception.Matcher{
		{Name: parent, Doc: "The same work may succeed if it is tried again."},
		{Name: "deadlock", Parent: parent, Doc: "The database ended the transaction to resolve a deadlock.", Match: dberr.IsDeadlock},
		{Name: "serialization", Parent: parent, Doc: "The transaction conflicted with a concurrent one: PostgreSQL's serialization failure, SQLite's stale snapshot.", Match: dberr.IsSerialization},
		{Name: "timeout", Parent: parent, Doc: "A wait timed out: for a lock (SQLite: busy, locked), a statement (statement_timeout) or the network. Not the step's own `timeout`.", Match: isTimeout},
		{Name: "connection", Parent: parent, Doc: "A server could not be reached, or the connection to it was lost.", Match: isConnection},
		{Name: "http", Parent: parent, Doc: "An HTTP status of 500 to 599, or 429. With an argument any other: `http(404)`, `http(4xx)`; those are not transient. Errors return their status from a method `StatusCode() int` or `HTTPStatusCode() int`.", Match: isServerStatus, New: httpStatus, Wide: wide},
	}
}

func constraint() []exception.Matcher {
	const parent = "constraint"
	return []exception.Matcher{
		{Name: parent, Doc: "A row breaks a rule of its table.", Match: isConstraint},
		{Name: "unique", Parent: parent, Doc: "A duplicate of a unique or primary key.", Match: dberr.IsUniqueViolation},
		{Name: "foreign_key", Parent: parent, Doc: "A reference to a row that does not exist, or the deletion of a row that is referred to.", Match: dberr.IsForeignKeyViolation},
		{Name: "not_null", Parent: parent, Doc: "A null in a column that does not allow it.", Match: dberr.IsNotNullViolation},
		{Name: "check", Parent: parent, Doc: "A row that a CHECK of the table rejects.", Match: dberr.IsCheckViolation},
	}
}

// invalidItem are the framework's own classes. A value that its column cannot hold will not fit the
// next time either.
func invalidItem() []exception.Matcher {
	parent := string(exception.ClassInvalidItem)
	return []exception.Matcher{
		{Name: parent, Doc: "An item that does not fit its type, its rules or its column: too long, out of range.", Match: dberr.IsInvalidData},
		{Name: string(exception.ClassParse), Parent: parent, Doc: "A text that does not fit its declared type."},
		{Name: string(exception.ClassValidate), Parent: parent, Doc: "An item that breaks a rule of a `validate` processor."},
		{Name: string(exception.ClassExpression), Parent: parent, Doc: "An item for which an expression failed."},
	}
}

func isConstraint(err error) bool {
	return dberr.IsConstraintViolation(err) && !dberr.IsInvalidData(err)
}

// IsUnreachable reports that the database gave no answer: it could not be reached, the connection
// was lost, or a wait was over.
func IsUnreachable(err error) bool { return isTimeout(err) || isConnection(err) }

func isTimeout(err error) bool {
	if dberr.IsTimeout(err) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, syscall.ETIMEDOUT) {
		return true
	}
	network, ok := errors.AsType[net.Error](err)
	return ok && network.Timeout()
}

// A truncated file ends in the same error; it is tried again in vain, and then fails.
func isConnection(err error) bool {
	if isTimeout(err) {
		return false
	}
	if dberr.SQLState(err) != "" {
		return dberr.IsNoConnection(err)
	}
	return dberr.IsNoConnection(err) || isNetwork(err) || errors.Is(err, io.ErrUnexpectedEOF)
}

func isNetwork(err error) bool {
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return true
	}
	if e, ok := errors.AsType[*url.Error](err); ok && errors.Is(e.Err, io.EOF) {
		return true // net/http's error for a peer that hung up before it answered
	}
	for _, code := range []error{
		net.ErrClosed, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE,
		syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ENETDOWN, syscall.ENOTCONN,
	} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

// Network errors wrap the same system calls, but do not count.
func isIO(err error) bool {
	if dberr.IsIO(err) {
		return true
	}
	if isNetwork(err) || isTimeout(err) {
		return false
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*os.LinkError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*os.SyscallError](err); ok {
		return true
	}
	for _, code := range []error{
		fs.ErrNotExist, fs.ErrPermission, fs.ErrExist, fs.ErrClosed, io.ErrShortWrite, io.ErrClosedPipe, io.ErrNoProgress,
		syscall.ENOSPC, syscall.EIO, syscall.EROFS,
	} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

func status(err error) int {
	if e, ok := errors.AsType[interface {
		error
		HTTPStatusCode() int
	}](err); ok {
		return e.HTTPStatusCode()
	}
	if e, ok := errors.AsType[interface {
		error
		StatusCode() int
	}](err); ok {
		return e.StatusCode()
	}
	return 0
}

func isServerStatus(err error) bool {
	code := status(err)
	return code >= 500 && code <= 599 || code == 429
}

func wide(arg string) bool { return strings.Contains(arg, "x") }

func httpStatus(arg string) (func(error) bool, error) {
	if !regexp.MustCompile(`^[1-5]([0-9]{2}|[0-9]x|xx)$`).MatchString(arg) {
		return nil, fmt.Errorf("%q is not an HTTP status; write three digits such as 404, or 4xx", arg)
	}
	return func(err error) bool {
		code := status(err)
		return code != 0 && like(arg, fmt.Sprint(code))
	}, nil
}

func sqlState(arg string) (func(error) bool, error) {
	if !regexp.MustCompile(`^[0-9A-Z]([0-9A-Z]{4}|[0-9A-Z]{3}x|[0-9A-Z]{2}xx|[0-9A-Z]xxx)$`).MatchString(arg) {
		return nil, fmt.Errorf("%q is not an SQLSTATE; write five characters of 0-9 and A-Z such as 40001, or 40xxx", arg)
	}
	return func(err error) bool { return like(arg, dberr.SQLState(err)) }, nil
}

func like(pattern, code string) bool {
	if len(pattern) != len(code) {
		return false
	}
	for i := range len(code) {
		if pattern[i] != 'x' && pattern[i] != code[i] {
			return false
		}
	}
	return true
}
