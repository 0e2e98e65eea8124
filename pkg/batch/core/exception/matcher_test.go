package exception_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

var (
	errDeadlock = errors.New("deadlock")
	errUnique   = errors.New("unique")
	errQuota    = errors.New("quota")
)

type codeError struct{ code string }

func (e codeError) Error() string { return "code " + e.code }

// tree is a small tree of sentinels: transient ⊃ deadlock ⊃ quota; constraint ⊃
// unique; invalid_item ⊃ parse; code(...).
func tree() []exception.Matcher {
	is := func(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }
	return []exception.Matcher{
		{Name: "transient"},
		{Name: "quota", Parent: "deadlock", Match: is(errQuota)},
		{Name: "deadlock", Parent: "transient", Match: is(errDeadlock)},
		{Name: "constraint"},
		{Name: "unique", Parent: "constraint", Match: is(errUnique)},
		{Name: "invalid_item"},
		{Name: "parse", Parent: "invalid_item"},
		{
			Name: "code",
			New: func(arg string) (func(error) bool, error) {
				if arg == "bad" {
					return nil, errors.New("no such code")
				}
				return func(err error) bool {
					var c codeError
					return errors.As(err, &c) && (c.code == arg || arg == "any")
				}, nil
			},
			Wide: func(arg string) bool { return arg == "any" },
		},
	}
}

func matchers(t testing.TB, more ...exception.Matcher) *exception.Matchers {
	t.Helper()
	m, err := exception.NewMatchers(append(tree(), more...)...)
	require.NoError(t, err)
	return m
}

func TestTheMostSpecificNameDecidesWhicheverListItIsIn(t *testing.T) {
	t.Parallel()
	m := matchers(t)
	for _, c := range []struct {
		errs, except []string
		err          error
		want         bool
	}{
		{[]string{"transient"}, nil, errDeadlock, true},
		{[]string{"transient"}, nil, errQuota, true},
		{[]string{"deadlock"}, []string{"transient"}, errDeadlock, true},
		{[]string{"transient"}, []string{"deadlock"}, errDeadlock, false},
		{[]string{"transient", "quota"}, []string{"deadlock"}, errQuota, true},
		{[]string{"transient", "quota"}, []string{"deadlock"}, errDeadlock, false},
		{[]string{"deadlock"}, []string{"deadlock"}, errDeadlock, false},
		{[]string{"deadlock"}, []string{"unique"}, errors.Join(errDeadlock, errUnique), false},
		{[]string{"unique"}, nil, errDeadlock, false},
		{nil, nil, errDeadlock, false},
		{[]string{"code(7)"}, []string{"unique"}, errors.Join(codeError{"7"}, errUnique), true},
		{[]string{"code(any)"}, []string{"unique"}, errors.Join(codeError{"7"}, errUnique), false},
		{[]string{"code(any)"}, []string{"constraint"}, errors.Join(codeError{"7"}, errUnique), true},
		{[]string{"code(any)"}, []string{"code( 7 )"}, codeError{"7"}, false},
		{[]string{"code(any)"}, []string{"code(8)"}, codeError{"7"}, true},
		{[]string{"transient"}, nil, errors.New("deadlock"), false},
	} {
		rules, err := m.RetryRules(c.errs, c.except)
		require.NoError(t, err)
		require.Equal(t, c.want, rules.Match(c.err), "errors %v, except %v: %v", c.errs, c.except, c.err)
		for _, wrapped := range []error{
			fmt.Errorf("write: %w", c.err), errors.Join(errors.New("rollback failed"), c.err),
			fmt.Errorf("%w: %w", errors.New("other"), fmt.Errorf("inner: %w", c.err)),
		} {
			require.Equal(t, c.want, rules.Match(wrapped), "wrapped: %v", wrapped)
		}
	}
}

func TestAMatcherIsAskedForEveryJoinedError(t *testing.T) {
	t.Parallel()
	m := matchers(t, exception.Matcher{Name: "seven", Match: func(err error) bool {
		var c codeError
		return errors.As(err, &c) && c.code == "7"
	}})
	require.Equal(t, "seven", m.Class(fmt.Errorf("a: %w", errors.Join(codeError{"6"}, fmt.Errorf("b: %w", codeError{"7"})))))
	require.Empty(t, m.Class(errors.Join(codeError{"6"}, codeError{"5"})))
	rules, err := m.RetryRules([]string{"code(7)"}, nil)
	require.NoError(t, err)
	require.True(t, rules.Match(errors.Join(codeError{"6"}, codeError{"7"})))
}

func TestWhereNoNameMatchesTheErrorsOwnWordCounts(t *testing.T) {
	t.Parallel()
	m := matchers(t)
	retry, err := m.RetryRules([]string{"deadlock"}, []string{"unique"})
	require.NoError(t, err)
	skip, err := m.SkipRules([]string{"unique"}, []string{"deadlock"})
	require.NoError(t, err)
	plain := errors.New("plain")
	require.True(t, retry.Match(exception.Retryable("call", plain)))
	require.False(t, skip.Match(exception.Retryable("call", plain)))
	require.True(t, skip.Match(exception.Skippable("check", plain)))
	require.False(t, retry.Match(exception.Skippable("check", plain)))
	require.False(t, retry.Match(exception.Retryable("call", errUnique)), "a list comes first")
	require.True(t, skip.Match(exception.InvalidItem("", "of_nobody", plain)), "a class that nobody knows leaves the word")
	require.False(t, retry.Match(nil))
	require.False(t, retry.Match(plain))
}

func TestABatchErrorWithAKnownClassSpeaksThroughItsClass(t *testing.T) {
	t.Parallel()
	m := matchers(t)
	parse := fmt.Errorf("line 3: %w", exception.InvalidItem("csv", exception.ClassParse, errors.New("x")))
	skips := func(errs, except []string) bool {
		rules, err := m.SkipRules(errs, except)
		require.NoError(t, err)
		return rules.Match(parse)
	}
	require.True(t, skips([]string{"parse"}, nil))
	require.True(t, skips([]string{"invalid_item"}, nil))
	require.False(t, skips([]string{"invalid_item"}, []string{"parse"}))
	require.True(t, skips([]string{"parse"}, []string{"invalid_item"}))
	require.False(t, skips([]string{"unique"}, nil), "who lists unique alone does not lose malformed lines")

	retry, err := m.RetryRules([]string{"deadlock"}, nil)
	require.NoError(t, err)
	require.True(t, retry.Match(&exception.BatchError{Class: "deadlock", Err: errors.New("x")}), "its class is enough")
}

// Rule C3.
func TestAWordThatWasNotAskedIsKnown(t *testing.T) {
	t.Parallel()
	m := matchers(t)
	parse := fmt.Errorf("line 3: %w", exception.InvalidItem("csv", exception.ClassParse, errors.New("x")))
	unasked := func(err error, errs, except []string) string {
		rules, wrong := m.SkipRules(errs, except)
		require.NoError(t, wrong)
		return rules.Unasked(err)
	}
	require.Equal(t, "parse", unasked(parse, []string{"unique"}, nil))
	require.Empty(t, unasked(parse, []string{"parse"}, nil), "it is skipped")
	require.Empty(t, unasked(parse, []string{"unique"}, []string{"invalid_item"}), "a listed name decides")
	require.Empty(t, unasked(exception.Skippable("check", errors.New("x")), []string{"unique"}, nil), "its own word counts")
	require.Empty(t, unasked(&exception.BatchError{Class: exception.ClassParse, Err: errors.New("x")}, []string{"unique"}, nil), "it says nothing")
	require.Empty(t, unasked(nil, []string{"unique"}, nil))

	rules, err := m.RetryRules([]string{"deadlock"}, nil)
	require.NoError(t, err)
	slow := &exception.BatchError{Class: exception.ClassParse, Retryable: true, Err: errors.New("slow")}
	noted := model.Retry{Limit: 3, Retryable: rules.Match, Unasked: rules.Unasked}.Noted(slow)
	require.ErrorIs(t, noted, slow)
	require.ErrorContains(t, noted, "slow (the error allows a retry, but the class parse decides: list parse in retry.errors)")
	require.Equal(t, error(slow), model.Retry{Retryable: rules.Match, Unasked: rules.Unasked}.Noted(slow), "no retry is asked for")
}

func TestNoListReachesTheEndOfTheContextAPanicOrAFatalError(t *testing.T) {
	t.Parallel()
	m := matchers(t, exception.Matcher{Name: "everything", Match: func(error) bool { return true }})
	for _, rules := range []func(errs, except []string) (*exception.Rules, error){m.RetryRules, m.SkipRules} {
		r, err := rules([]string{"everything"}, nil)
		require.NoError(t, err)
		require.True(t, r.Match(errDeadlock))
		for _, err := range []error{
			context.Canceled, context.DeadlineExceeded, &panics.PanicError{Value: errDeadlock}, exception.Fatal("header", errDeadlock),
		} {
			require.False(t, r.Match(err), "%v", err)
			require.False(t, r.Match(fmt.Errorf("read: %w", errors.Join(errDeadlock, err))), "%v", err)
		}
		word := &exception.BatchError{Retryable: true, Skippable: true, Err: errDeadlock}
		require.True(t, r.Match(word))
		word.Err = &panics.PanicError{Value: "p"}
		require.False(t, r.Match(word), "a panic stays one")
		require.True(t, r.Match(claimsDeadline{}), "a network timeout is no end of the step's time")
		require.False(t, r.Match(fmt.Errorf("%w: %w", context.DeadlineExceeded, claimsDeadline{})))
	}
}

// claimsDeadline is like the errors of package net.
type claimsDeadline struct{ net.UnknownNetworkError }

func (claimsDeadline) Is(target error) bool { return target == context.DeadlineExceeded }

func TestTheClassOfAnErrorIsItsMostSpecificMatcher(t *testing.T) {
	t.Parallel()
	m := matchers(t)
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errors.New("unique"), ""},
		{errUnique, "unique"},
		{fmt.Errorf("x: %w", errQuota), "quota"},
		{errors.Join(errUnique, errQuota), "quota"},
		{errors.Join(errUnique, errDeadlock), "deadlock"},
		{exception.InvalidItem("", exception.ClassParse, errDeadlock), "parse"},
		{exception.InvalidItem("", exception.ClassInvalidItem, errDeadlock), "deadlock"},
		{exception.InvalidItem("", "of_nobody", errors.New("x")), "of_nobody"},
		{exception.Skippable("", errors.New("x")), ""},
	} {
		require.Equal(t, c.want, m.Class(c.err), "%v", c.err)
	}
}

func TestMatchersThatCannotBeAreRefusedTogether(t *testing.T) {
	t.Parallel()
	_, err := exception.NewMatchers(
		exception.Matcher{Name: "a"}, exception.Matcher{Name: "a"}, exception.Matcher{Name: "no name"},
		exception.Matcher{Name: "b", Parent: "nobody"}, exception.Matcher{Name: "c", Parent: "d"}, exception.Matcher{Name: "d", Parent: "c"},
		exception.Matcher{Name: "e", Parent: "c"}, exception.Matcher{Name: "f", Parent: "f"}, exception.Matcher{Name: "a"},
	)
	require.EqualError(t, err, `error class "a" is registered twice
error class "a" is registered twice
error class "b": its parent class "nobody" does not exist
error class "c" is its own ancestor
error class "d" is its own ancestor
error class "f" is its own ancestor
error class "no name": its name is not an identifier`)
}

func TestEveryWrongNameOfBothListsIsReported(t *testing.T) {
	t.Parallel()
	m := matchers(t)
	_, err := m.SkipRules([]string{"uniq", "code", "code()", "code(bad)"}, []string{"unique(1)", "code(1"})
	require.EqualError(t, err, `there is no error class "uniq" (known: code(...), constraint, deadlock, invalid_item, parse, quota, transient, unique)
error class code needs an argument: code(...)
error class "code()": write name(argument)
error class code(bad): no such code
error class unique has no argument
error class "code(1": write name(argument)`)
	var unknown *exception.UnknownMatcherError
	require.ErrorAs(t, m.Check("uniq"), &unknown)
	require.Equal(t, "uniq", unknown.Name)
	require.Equal(t, m.Names(), unknown.Known)
	require.NoError(t, m.Check("code(7)"))
	require.Error(t, (&exception.Matchers{}).Check("a"))
	require.Empty(t, (&exception.Matchers{}).Class(errUnique))
}

func TestParentsComeBeforeTheirChildren(t *testing.T) {
	t.Parallel()
	var names []string
	for _, m := range matchers(t).All() {
		require.True(t, m.Parent == "" || slices.Contains(names, m.Parent), m.Name)
		names = append(names, m.Name)
	}
	require.Equal(t, []string{"transient", "deadlock", "quota", "constraint", "unique", "invalid_item", "parse", "code"}, names)
}

func TestTheOrderOfTheListsDoesNotMatter(t *testing.T) {
	t.Parallel()
	names := []string{"transient", "deadlock", "quota", "constraint", "unique", "invalid_item", "parse", "code(7)", "code(any)"}
	errs := []error{errDeadlock, errUnique, errQuota, codeError{"7"}, exception.InvalidItem("", exception.ClassParse, errUnique)}
	rapid.Check(t, func(t *rapid.T) {
		list, except := rapid.SliceOf(rapid.SampledFrom(names)).Draw(t, "errors"), rapid.SliceOf(rapid.SampledFrom(names)).Draw(t, "except")
		err := errors.Join(rapid.SliceOfN(rapid.SampledFrom(errs), 1, 3).Draw(t, "err")...)
		one, oerr := exception.NewMatchers(tree()...)
		require.NoError(t, oerr)
		other, oerr := exception.NewMatchers(rapid.Permutation(tree()).Draw(t, "registered")...)
		require.NoError(t, oerr)
		a, aerr := one.SkipRules(list, except)
		require.NoError(t, aerr)
		shuffled := func(list []string, label string) []string {
			if len(list) == 0 {
				return nil
			}
			return rapid.Permutation(list).Draw(t, label)
		}
		b, berr := other.SkipRules(shuffled(list, "errors again"), shuffled(except, "except again"))
		require.NoError(t, berr)
		require.Equal(t, a.Match(err), b.Match(err))
	})
}
