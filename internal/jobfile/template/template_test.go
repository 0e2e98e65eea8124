package template

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestATemplateIsTextsAroundExpressions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		texts []string
		holes []string
	}{
		"":                         {[]string{""}, nil},
		"$5 and $HOME and $$":      {[]string{"$5 and $HOME and $$"}, nil},
		"$${x}":                    {[]string{"${x}"}, nil},
		"$$${x}":                   {[]string{"$${x}"}, nil},
		"${a}":                     {[]string{"", ""}, []string{"a"}},
		"x${ a }y${b}":             {[]string{"x", "y", ""}, []string{"a", "b"}},
		"${'}'}":                   {[]string{"", ""}, []string{"'}'"}},
		`${"\"}"}!`:                {[]string{"", "!"}, []string{`"\"}"`}},
		"${{'a': 1}['a']}":         {[]string{"", ""}, []string{"{'a': 1}['a']"}},
		"${if a { 'x' } else {b}}": {[]string{"", ""}, []string{"if a { 'x' } else {b}"}},
	} {
		tpl, err := Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want.texts, tpl.Texts, text)
		var holes []string
		for _, h := range tpl.Holes {
			holes = append(holes, h.Text)
			require.True(t, strings.HasPrefix(text[h.Offset:], h.Text), text)
		}
		require.Equal(t, want.holes, holes, text)
	}
	for text, offset := range map[string]int{"ab${": 2, "${a": 0, "${a}${'}": 4, "${{a}": 0} {
		_, err := Parse(text)
		require.Equal(t, &templateError{offset, "${ is not closed", literalHint}, err, text)
	}
}

func TestAnEscapedTextIsItself(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("${}a'\"\\ ü\n"))).Draw(t, "text")
		if strings.Contains(text, "$${") {
			t.Skip("an escape already")
		}
		tpl, err := Parse(strings.ReplaceAll(text, "${", "$${"))
		require.NoError(t, err)
		require.Empty(t, tpl.Holes)
		require.Equal(t, text, tpl.Literal())
	})
}
