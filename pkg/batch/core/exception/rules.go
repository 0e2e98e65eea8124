package exception

import (
	"context"
	"errors"
	"slices"

	"github.com/surfin-batch/surfin/internal/panics"
)

// Rules decide whether an error is retried, or costs its item. The most specific matching name of either list
// decides: the deepest, with an argument first; at equal rank the exception.
//
// Otherwise the error's own classification counts ([IsRetryable], [IsSkippable]), unless a [BatchError]'s
// Class is a known name, which could have been listed.
//
// No list applies to the end of a context, a panic, or [Fatal].
type Rules struct {
	matchers *Matchers
	rules    []rule // deciding ones first
	word     func(error) bool
}

// RetryRules are `retry`'s; its error reports all.
func (m *Matchers) RetryRules(errs, except []string) (*Rules, error) {
	return m.rulesOf(errs, except, IsRetryable)
}

// SkipRules are `skip`'s.
func (m *Matchers) SkipRules(errs, except []string) (*Rules, error) {
	return m.rulesOf(errs, except, IsSkippable)
}

func (m *Matchers) rulesOf(errs, except []string, word func(error) bool) (*Rules, error) {
	r := &Rules{matchers: m, word: word}
	var wrong []error
	add := func(names []string, applies bool) {
		for _, name := range names {
			made, err := m.rule(name, applies)
			if err != nil {
				wrong = append(wrong, err)
				continue
			}
			r.rules = append(r.rules, made)
		}
	}
	add(errs, true)
	add(except, false)
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	slices.SortStableFunc(r.rules, bySpecificity)
	return r, nil
}

// Match reports whether the rules apply to err.
func (r *Rules) Match(err error) bool {
	if err == nil || beyondRules(err) {
		return false
	}
	for _, rule := range r.rules {
		if rule.match(err) {
			return rule.applies
		}
	}
	return r.knownClass(err) == "" && r.word(err)
}

// "" means that its own classification counts.
func (r *Rules) knownClass(err error) string {
	if c, ok := classifier(err); ok {
		if be, is := c.(*BatchError); is && r.matchers.byName[string(be.Class)] != nil { //nolint:errorlint // it is the first classifier, not the first BatchError
			return string(be.Class)
		}
	}
	return ""
}

// Unasked is the known class of an error, its own classification ignored, or "".
func (r *Rules) Unasked(err error) string {
	if err == nil || beyondRules(err) || slices.ContainsFunc(r.rules, func(rule rule) bool { return rule.match(err) }) || !r.word(err) {
		return ""
	}
	return r.knownClass(err)
}

func beyondRules(err error) bool {
	var panicked *panics.PanicError
	return errors.Is(err, context.Canceled) || isDeadline(err) || errors.As(err, &panicked) || isFatal(err)
}

// Not a network time-out, which claims to be one by Is: an ordinary failure while time is left.
func isDeadline(err error) bool {
	return anyOf(err, func(e error) bool { return e == context.DeadlineExceeded }) //nolint:errorlint // see above
}

// The outermost BatchError has neither class nor flags; one of joined errors suffices.
func isFatal(err error) bool {
	for err != nil {
		switch c := err.(type) { //nolint:errorlint // the outermost is looked for
		case *BatchError:
			return c.Class == classNone && !c.Retryable && !c.Skippable
		case Classifier:
			return false
		}
		branches, next := unwrap(err)
		if slices.ContainsFunc(branches, isFatal) {
			return true
		}
		err = next
	}
	return false
}
