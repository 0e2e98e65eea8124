package core

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ExclusiveKey groups executions of a job that run one at a time (rule L12): those with the same key.
// "" excludes only executions of one instance.
type ExclusiveKey string

// ExclusiveJob is the key of a job that runs one execution at a time.
const ExclusiveJob ExclusiveKey = "job"

// maxExclusiveKey is the maximum length of a key in bytes: it is part of an index.
const maxExclusiveKey = 500

const exclusiveBy = "key:"

// ExclusiveBy returns the key of the executions for which an expression has this value.
func ExclusiveBy(value string) ExclusiveKey { return ExclusiveKey(exclusiveBy + value) }

// Value returns the value of ExclusiveBy; false for another key.
func (k ExclusiveKey) Value() (string, bool) { return strings.CutPrefix(string(k), exclusiveBy) }

// Check reports a key that the repository cannot store.
func (k ExclusiveKey) Check() error {
	switch value, _ := k.Value(); {
	case len(value) > maxExclusiveKey:
		return fmt.Errorf("the key has %d bytes, more than the allowed %d", len(value), maxExclusiveKey)
	case !utf8.ValidString(value) || strings.Contains(value, "\x00"):
		return errors.New("the key is not valid UTF-8, or contains a NUL")
	}
	return nil
}

// ExclusiveError refuses an execution that must not run in parallel to another one (rule L12).
type ExclusiveError struct {
	JobName string
	Key     ExclusiveKey
	// Running is the execution that has the key.
	Running AlreadyRunningError
}

// Error names the other execution.
func (e *ExclusiveError) Error() string {
	of := "one execution of it"
	if value, is := e.Key.Value(); is {
		of = fmt.Sprintf("one execution with the key %q", value)
	}
	return fmt.Sprintf("job %s runs %s at a time: %s", e.JobName, of, e.Running.state())
}
