// Package partname makes names of partitions out of texts such as file names.
//
// It imports the standard library only.
package partname

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Max is the maximum length of a partition's name, in bytes.
const Max = 200

// Clean replaces other characters than letters, digits and _ - . / by _, and cuts long names.
func Clean(text string) string {
	name := strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./", r) {
			return '_'
		}
		return r
	}, text)
	if name == "" {
		return "_"
	}
	return cut(name, Max)
}

func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// Unique returns the cleaned names, repeated ones numbered: a, a-2, a-3.
func Unique(texts []string) []string {
	names, taken, next := make([]string, len(texts)), make(map[string]bool, len(texts)), map[string]int{}
	for i, text := range texts {
		names[i] = Clean(text)
		taken[names[i]] = true
	}
	first := make(map[string]bool, len(texts))
	for i, name := range names {
		if !first[name] {
			first[name] = true
			continue
		}
		n := max(2, next[name])
		for ; ; n++ {
			tail := fmt.Sprintf("-%d", n)
			if candidate := cut(name, Max-len(tail)) + tail; !taken[candidate] {
				names[i], taken[candidate], first[candidate] = candidate, true, true
				break
			}
		}
		next[name] = n + 1
	}
	return names
}
