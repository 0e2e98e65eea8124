package row_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func TestABoolHasWordsOfItsOwn(t *testing.T) {
	t.Parallel()
	s, err := row.NewSchema(row.Field{Name: "b", Kind: row.Bool, Trues: []string{"Ja", "x"}, Falses: []string{"Nein"}}, row.Field{Name: "p", Kind: row.Bool})
	require.NoError(t, err)
	f := s.Field(0)
	for text, want := range map[string]bool{"Ja": true, " JA ": true, "X": true, "true": true, "nein": false, "false": false} {
		v, err := f.Parse(text)
		require.NoError(t, err)
		require.Equal(t, row.BoolValue(want), v, text)
	}
	require.Equal(t, "Ja Nein", string(f.AppendText(append(f.AppendText(nil, row.BoolValue(true)), ' '), row.BoolValue(false))))
	_, err = f.Parse("yes")
	require.ErrorContains(t, err, "(only true, false, Ja, x, Nein are)")
	_, err = s.Field(1).Parse("TRUE")
	require.ErrorContains(t, err, "(only true and false are; coerce: convert accepts it)")
	for _, f := range []row.Field{{Kind: row.Int, Trues: []string{"x"}}, {Kind: row.Bool, Trues: []string{"x"}, Falses: []string{"X"}}, {Kind: row.Bool, Trues: []string{"FALSE"}}, {Kind: row.Bool, Falses: []string{""}}} {
		f.Name = "b"
		_, err := row.NewSchema(f)
		require.Error(t, err)
	}
}

func TestNumbersHaveATrailingMinusAndSeparatorsThatLookAlike(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		f          row.Field
		text, want string
	}{
		{row.Field{Kind: row.Int, TrailingMinus: true}, "12-", "-12"},
		{row.Field{Kind: row.DecimalKind, DecimalSeparator: ",", ThousandsSeparator: ".", TrailingMinus: true}, "1.234,50-", "-1234.50"},
		{row.Field{Kind: row.Float, TrailingMinus: true}, "0.5 -", "-0.5"},
		{row.Field{Kind: row.DecimalKind, ThousandsSeparator: " "}, "1\u00a0234\u202f567.5", "1234567.5"},
		{row.Field{Kind: row.DecimalKind, ThousandsSeparator: "\u00a0"}, "1 234.5", "1234.5"},
		{row.Field{Kind: row.Int, ThousandsSeparator: "'"}, "1\u2019234'567", "1234567"},
	} {
		c.f.Name = "n"
		s, err := row.NewSchema(c.f)
		require.NoError(t, err)
		v, err := s.Field(0).Parse(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, v.String())
	}
	for _, text := range []string{"-12-", "12--", "-", "1e-", "+12-"} {
		_, err := (&row.Field{Name: "n", Kind: row.DecimalKind, TrailingMinus: true}).Parse(text)
		require.Error(t, err, text)
	}
	_, err := (&row.Field{Name: "n", Kind: row.Int}).Parse("12-")
	require.Error(t, err, "only where the field says so")
	_, err = (&row.Field{Name: "n", Kind: row.Int}).Parse("12.0")
	require.ErrorContains(t, err, "coerce: convert accepts it")
}
