package main

import (
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
)

// idioms are words that make prose hard to read when they are frequent.
func idioms() []idiom {
	return []idiom{
		{"what", regexp.MustCompile(`(?i)\bwhat\b`)},
		{"whose", regexp.MustCompile(`(?i)\b(whose|of which)\b`)},
		{"that of", regexp.MustCompile(`(?i)\b(that|those) of\b`)},
		{"is no", regexp.MustCompile(`(?i)\b(is|are) no\b`)},
		{"behind", regexp.MustCompile(`(?i)\bbehind\b`)},
		{"goes on", regexp.MustCompile(`(?i)\bgo(es)? on\b`)},
		{"told", regexp.MustCompile(`(?i)\b(told|tells|tell|hears|heard)\b`)},
		{"in hand", regexp.MustCompile(`(?i)\bin hand\b`)},
		{"anew", regexp.MustCompile(`(?i)\banew\b`)},
		{"in view", regexp.MustCompile(`(?i)\b(in|into) view\b`)},
		{"who", regexp.MustCompile(`\bWho(ever)? [a-z]`)},
		{"besides", regexp.MustCompile(`(?i)\bbesides?\b`)},
		{"nobody", regexp.MustCompile(`(?i)\b(nobody|whoever)\b`)},
		{"is meant", regexp.MustCompile(`(?i)\b(is|are) meant\b`)},
	}
}

type idiom struct {
	name string
	re   *regexp.Regexp
}

// words counts the words of comments and Markdown, and how many of 10,000 are idioms. Generated
// pages and the changelog do not count, nor do blocks of code.
func words(t *tree) []measure {
	total, found := 0, map[string]float64{}
	known := idioms()
	t.prose(func(_ *source, _ int, text string) {
		total += len(strings.Fields(text))
		for _, i := range known {
			found[i.name] += float64(len(i.re.FindAllStringIndex(text, -1)))
		}
	})
	for name, n := range found {
		found[name] = math.Round(1e5*n/float64(max(1, total))) / 10
	}
	return append([]measure{{"words", "total", float64(total)}}, byName("idiom", found)...)
}

// prose calls f with each line of comments and Markdown.
func (t *tree) prose(f func(s *source, line int, text string)) {
	for _, s := range t.files {
		for n, line := range strings.Split(s.text, "\n") {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "//"); ok {
				f(s, n+1, rest)
			} else if _, rest, ok := strings.Cut(line, " // "); ok {
				f(s, n+1, rest)
			}
		}
	}
	for _, s := range t.markdown {
		if strings.HasPrefix(s.path, "docs/reference/") || s.path == "CHANGELOG.md" {
			continue
		}
		code := false
		for n, line := range strings.Split(s.text, "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				code = !code
			} else if !code {
				f(s, n+1, line)
			}
		}
	}
}

func listIdiom(out io.Writer, t *tree, name string) error {
	for _, i := range idioms() {
		if i.name == name {
			t.prose(func(s *source, line int, text string) {
				if i.re.MatchString(text) {
					fmt.Fprintf(out, "%s:%d:%s\n", s.path, line, text)
				}
			})
			return nil
		}
	}
	return fmt.Errorf("-list: no idiom %q", name)
}
