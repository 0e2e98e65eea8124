package core

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ExclusiveKey groups executions that run one at a time (rule L12). "" excludes only one instance's.
type ExclusiveKey string

// ExclusiveJob runs one execution at a time.
const ExclusiveJob ExclusiveKey = "job"

const maxExclusiveKey = 500

const exclusiveBy = "key:"

// ExclusiveBy is the key of an expression's value.
func ExclusiveBy(value string) ExclusiveKey { return ExclusiveKey(exclusiveBy + value) }

// Value of ExclusiveBy; else false.
func (k ExclusiveKey) Value() (string, bool) { return strings.CutPrefix(string(k), exclusiveBy) }

// Check reports a key that cannot be stored.
func (k ExclusiveKey) Check() error {
	switch value, _ := k.Value(); {
	case len(value) > maxExclusiveKey:
		return fmt.Errorf("the key has %d bytes, more than the allowed %d", len(value), maxExclusiveKey)
	case !utf8.ValidString(value) || strings.Contains(value, "\x00"):
		return errors.New("the key is not valid UTF-8, or contains a NUL")
	}
	return nil
}
