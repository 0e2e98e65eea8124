package model

import (
	"cmp"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// MatchPattern reports whether an exit code matches a transition's pattern: `*`
// is any run of characters, `?` exactly one, everything else itself. The empty
// pattern matches everything.
func MatchPattern(pattern, code string) bool {
	if pattern == "" {
		return true
	}
	p, c := []rune(pattern), []rune(code)
	star, mark, i, j := -1, 0, 0, 0
	for j < len(c) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == c[j]):
			i++
			j++
		case star >= 0: // let the last star take one more character
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

// ComparePatterns orders patterns from the most specific to the most general: without `*` first, then
// more `*` before fewer, fewer `?` before more, longer before shorter, then by text (rule F1).
func ComparePatterns(a, b string) int {
	sa, sb := strings.Count(a, "*"), strings.Count(b, "*")
	if (sa == 0) != (sb == 0) {
		return cmp.Compare(sa, sb)
	}
	return cmp.Or(
		cmp.Compare(sb, sa),
		cmp.Compare(strings.Count(a, "?"), strings.Count(b, "?")),
		cmp.Compare(len(b), len(a)),
		strings.Compare(a, b),
	)
}

// Next returns the target of the most specific transition that matches the outcome, regardless of their
// order; false if none does. Of two equal patterns the one for successes wins.
func Next(transitions []Transition, status core.Status, code string) (Target, bool) {
	sorted := slices.Clone(transitions)
	slices.SortStableFunc(sorted, func(a, b Transition) int {
		switch c := ComparePatterns(a.pattern(), b.pattern()); {
		case c != 0:
			return c
		case a.Success == b.Success:
			return 0
		case a.Success:
			return -1
		}
		return 1
	})
	for _, t := range sorted {
		if t.matches(status, code) {
			return t.Target, true
		}
	}
	return Target{}, false
}

func (t Transition) pattern() string {
	if t.Pattern == "" {
		return "*"
	}
	return t.Pattern
}

func (t Transition) matches(status core.Status, code string) bool {
	switch {
	case status == core.StatusUnknown: // it must not be taken for another outcome
		return !t.Success && t.Pattern == code
	case t.Success && status != core.StatusCompleted:
		return false
	}
	return MatchPattern(t.pattern(), code)
}
