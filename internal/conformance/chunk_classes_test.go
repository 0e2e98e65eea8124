//test:plain

package conformance_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// classes are the scenario's class tree as matchers of the engine, and its
// lists as rules over them: the most specific matcher of an error decides, and
// the error's own class if none does.
type classes struct {
	skip, retry *exception.Rules
	// skipListed and retryListed mean that the scenario lists types.
	skipListed, retryListed bool
}

func newClasses(s *chunkScenario) (*classes, error) {
	names := map[string]bool{}
	for child, parent := range s.ErrorTypes {
		names[child], names[parent] = true, true
	}
	for _, name := range slices.Concat(s.Skippable, s.NotSkippable, s.Retryable) {
		names[name] = true
	}
	delete(names, "") // the parent of a root
	var list []exception.Matcher
	for _, name := range sortedKeys(names) {
		list = append(list, exception.Matcher{
			Name: matcherName(name), Parent: matcherName(s.ErrorTypes[name]), Doc: "A type of the scenario.",
			Match: func(err error) bool { return isa(err, name, s.ErrorTypes) },
		})
	}
	matchers, err := exception.NewMatchers(list...)
	if err != nil {
		return nil, err
	}
	c := &classes{skipListed: s.Skippable != nil || s.NotSkippable != nil, retryListed: s.Retryable != nil}
	var skipErr, retryErr error
	c.skip, skipErr = matchers.SkipRules(matcherNames(s.Skippable), matcherNames(s.NotSkippable))
	c.retry, retryErr = matchers.RetryRules(matcherNames(s.Retryable), nil)
	return c, errors.Join(skipErr, retryErr)
}

func isa(err error, name string, parents map[string]string) bool {
	var t *typed
	if !errors.As(err, &t) {
		return false
	}
	for of, steps := t.name, 0; of != "" && steps <= len(parents); of, steps = parents[of], steps+1 {
		if of == name {
			return true
		}
	}
	return false
}

func matcherName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || unicode.IsLetter(r) && r < unicode.MaxASCII || unicode.IsDigit(r) {
			return r
		}
		return '_'
	}, name)
}

func matcherNames(names []string) []string {
	var list []string
	for _, name := range names {
		list = append(list, matcherName(name))
	}
	return list
}

func (c *classes) skippable(err error) bool {
	var t *typed
	if !c.skipListed && errors.As(err, &t) {
		return t.of.IsSkippable()
	}
	return c.skip.Match(err)
}

func (c *classes) retryable(err error) bool {
	var t *typed
	if !c.retryListed && errors.As(err, &t) {
		return t.of.IsRetryable()
	}
	return c.retry.Match(err)
}

func TestTheMostSpecificTypeOfTheTreeDecides(t *testing.T) {
	t.Parallel()
	c, err := newClasses(&chunkScenario{
		ErrorTypes: map[string]string{"Base": "", "SubError": "Base", "SubSub": "SubError"},
		Skippable:  []string{"Base", "SubSub"}, NotSkippable: []string{"SubError"},
	})
	require.NoError(t, err)
	for name, want := range map[string]bool{"Base": true, "SubError": false, "SubSub": true, "Other": false} {
		for _, wrapped := range []bool{false, true} {
			err := newError(fault{Phase: phaseRead, ErrorClass: "both", Error: name, Wrapped: wrapped}, occasion{where: phaseRead})
			require.Equal(t, want, c.skippable(err), name)
			require.True(t, c.retryable(err), "no list says otherwise")
		}
	}
}
