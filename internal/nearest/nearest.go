// Package nearest finds the intended name for a misspelt one.
//
// It imports the standard library only.
package nearest

import (
	"slices"
	"strings"
)

// Hint suggests " (did you mean x?)", else all names if few, else nothing.
func Hint(name string, names []string) string {
	if near := Name(name, names); near != "" {
		return " (did you mean " + near + "?)"
	}
	const maxNames = 20
	if len(names) == 0 || len(names) > maxNames {
		return ""
	}
	return " (there is " + strings.Join(names, ", ") + ")"
}

// Name returns the name with the fewest edits; empty if all are too far away.
func Name(name string, names []string) string {
	best, smallest := "", max(1, min(3, len(name)/2))+1
	for _, candidate := range names {
		d := distance(fold(name), fold(candidate))
		if d < smallest {
			best, smallest = candidate, d
		}
	}
	return best
}

func fold(name string) []rune {
	return []rune(strings.ToLower(strings.NewReplacer("_", " ", "-", " ").Replace(name)))
}

func distance(s, t []rune) int {
	before, prev := make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range s {
		row := make([]int, len(t)+1)
		row[0] = i + 1
		for j := range t {
			cost := 1
			if s[i] == t[j] {
				cost = 0
			}
			row[j+1] = min(prev[j+1]+1, row[j]+1, prev[j]+cost)
			if i > 0 && j > 0 && s[i] == t[j-1] && s[i-1] == t[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, prev = prev, slices.Clone(row)
	}
	return prev[len(t)]
}
