package jobfile

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
		tpl, err := parseTemplate(text)
		require.NoError(t, err, text)
		require.Equal(t, want.texts, tpl.texts, text)
		var holes []string
		for _, h := range tpl.holes {
			holes = append(holes, h.text)
			require.True(t, strings.HasPrefix(text[h.offset:], h.text), text)
		}
		require.Equal(t, want.holes, holes, text)
	}
	for text, offset := range map[string]int{"ab${": 2, "${a": 0, "${a}${'}": 4, "${{a}": 0} {
		_, err := parseTemplate(text)
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
		tpl, err := parseTemplate(strings.ReplaceAll(text, "${", "$${"))
		require.NoError(t, err)
		require.Empty(t, tpl.holes)
		require.Equal(t, text, tpl.literal())
	})
}

func TestSizesArePowersOf1024(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"0": 0, "512": 512, "64KB": 64 << 10, "10MB": 10 << 20, "1GB": 1 << 30} {
		got, err := parseSize(text)
		require.NoError(t, err)
		require.EqualValues(t, want, got)
	}
	for _, text := range []string{"", "KB", "-1", "1.5MB", "1TB", "1kb", "+1", "9999999999GB", " 1"} {
		_, err := parseSize(text)
		require.Error(t, err, text)
	}
}
