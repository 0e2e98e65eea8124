package exception

import (
	"context"
	"errors"
	"slices"
)

// Rules decide whether an error is retried, or whether it costs its item. Among the listed names that
// match an error the most specific one decides, in either list: the deepest in the tree, a name with an
// argument before those without. Between two of the same rank the exception wins.
//
// If none matches, the error's own classification counts ([IsRetryable], [IsSkippable]), unless it
// belongs to a [BatchError] with a known name as its Class: such an error counts by its class, which
// could have been listed and was not.
//
// No list applies to the end of a context, a panic, or a BatchError without any classification
// ([Fatal]).
type Rules struct {
	matchers *Matchers
	rules    []rule // deciding rules first
	word     func(error) bool
}

// RetryRules returns the rules of `retry`. Its error reports all errors in the names.
func (m *Matchers) RetryRules(errs, except []string) (*Rules, error) {
	return m.rulesOf(errs, except, IsRetryable)
}

// SkipRules returns the rules of `skip`; see RetryRules.
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

// knownClass returns the class of an error that counts by it; "" means that its own classification
// counts.
func (r *Rules) knownClass(err error) string {
	if c, ok := classifier(err); ok {
		if be, is := c.(*BatchError); is && r.matchers.byName[string(be.Class)] != nil { //nolint:errorlint // it is the first classifier, not the first BatchError
			return string(be.Class)
		}
	}
	return ""
}

// Unasked returns the class of an error if its own classification would make the rules apply but was
// ignored, since the class is a known name; "" if that is not so, or a listed name decides.
func (r *Rules) Unasked(err error) string {
	if err == nil || beyondRules(err) || slices.ContainsFunc(r.rules, func(rule rule) bool { return rule.match(err) }) || !r.word(err) {
		return ""
	}
	return r.knownClass(err)
}

// beyondRules reports errors that must fail the step.
func beyondRules(err error) bool {
	var panicked *PanicError
	return errors.Is(err, context.Canceled) || isDeadline(err) || errors.As(err, &panicked) || isFatal(err)
}

// isDeadline reports the end of a context's time. A network time-out also claims to be one by its Is
// method, and is not: it is an ordinary failure of the other side while there is time left.
func isDeadline(err error) bool {
	return anyOf(err, func(e error) bool { return e == context.DeadlineExceeded }) //nolint:errorlint // see above
}

// isFatal reports an error with a BatchError without class and flags as its outermost classifier; one
// of several joined errors suffices.
func isFatal(err error) bool {
	for err != nil {
		switch c := err.(type) { //nolint:errorlint // the outermost is looked for
		case *BatchError:
			return c.Class == ClassNone && !c.Retryable && !c.Skippable
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
