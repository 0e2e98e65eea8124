package row_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Rule D14.
func TestAnExactFieldRefusesWhatItWouldNotWriteAgain(t *testing.T) {
	t.Parallel()
	scale := 2
	for _, c := range []struct {
		field   row.Field
		takes   []string
		refuses []string
	}{
		{row.Field{Kind: row.Int}, []string{"7", "-7", "0"}, []string{"007", "+7", "-0", " 7", "7 "}},
		{row.Field{Kind: row.DecimalKind}, []string{"1.10", "1.1", "12345678901234567890.1"}, []string{"1E5", "01.1", ".5", "-0.0"}},
		{row.Field{Kind: row.DecimalKind, Scale: &scale}, []string{"1.10"}, []string{"1.1"}},
		{row.Field{Kind: row.DecimalKind, DecimalSeparator: ",", ThousandsSeparator: "."}, []string{"1234,5"}, []string{"1.234,5"}},
		{row.Field{Kind: row.Float}, []string{"1.5", "1e+300"}, []string{"1.50", "1E5", "12345678901234567890"}},
		{row.Field{Kind: row.Bool}, []string{"true"}, []string{" true"}},
		{row.Field{Kind: row.DateKind, Format: "d/M/yyyy"}, []string{"1/2/2026"}, []string{"01/02/2026"}},
		{row.Field{Kind: row.Timestamp}, []string{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.100+01:00", "2026-01-02 03:04:05+01"},
			[]string{"2026-01-02T03:04:05", "2026-01-02T03:04:05.1234567Z", " 2026-01-02T03:04:05Z"}},
		{row.Field{Kind: row.Timestamp, Format: "yyyy-MM-dd HH:mm"}, []string{"2026-01-02 03:04"}, []string{"2026-01-02 03:04:05"}},
		{row.Field{Kind: row.UUIDKind}, []string{"c0ffee00-0000-4000-8000-000000000001"}, []string{"C0FFEE00-0000-4000-8000-000000000001"}},
		{row.Field{Kind: row.JSONKind}, []string{`{"b":1,"a":1.0}`}, []string{`{"b": 1}`}},
		{row.Field{Kind: row.ListOf(row.Timestamp)}, []string{`["2026-01-02T03:04:05+01:00",null]`}, []string{`["2026-01-02T03:04:05"]`, `[ ]`}},
		{row.Field{Kind: row.Int, Nullable: true, Nulls: []string{"NA", "-"}}, []string{"NA", "1"}, []string{"-"}},
		{row.Field{Kind: row.String}, []string{" 007 "}, nil},
	} {
		c.field.Name, c.field.Exact = "v", true
		schema, err := row.NewSchema(c.field)
		require.NoError(t, err)
		for _, text := range c.takes {
			_, err := schema.Field(0).Parse(text)
			require.NoError(t, err, "%s %q", schema, text)
		}
		for _, text := range c.refuses {
			_, err := schema.Field(0).Parse(text)
			require.Error(t, err, "%s %q", schema, text)
		}
	}
	_, err := row.NewSchema(row.Field{Name: "v", Kind: row.Int, Exact: true, Coerce: row.CoerceConvert})
	require.ErrorContains(t, err, "exact contradicts coerce")
}
