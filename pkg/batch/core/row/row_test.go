package row_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func field(t testing.TB, f row.Field) *row.Field {
	t.Helper()
	if f.Name == "" {
		f.Name = "x"
	}
	s, err := row.NewSchema(f)
	require.NoError(t, err)
	return s.Field(0)
}

func TestTextsAreReadAsTheFieldSays(t *testing.T) {
	t.Parallel()
	day := row.NewDate(2026, time.November, 21)
	for _, c := range []struct {
		f    row.Field
		text string
		want row.Value
	}{
		{row.Field{Kind: row.String}, " NO ", row.StringValue(" NO ")},
		{row.Field{Kind: row.String}, "", row.StringValue("")},
		{row.Field{Kind: row.String, Nullable: true, Nulls: []string{"NA"}}, "NA", row.Value{}},
		{row.Field{Kind: row.Int}, " -007 ", row.IntValue(-7)},
		{row.Field{Kind: row.Int, Nullable: true}, "", row.Value{}},
		{row.Field{Kind: row.Float}, "1e3", row.FloatValue(1000)},
		{row.Field{Kind: row.Bool}, "true", row.BoolValue(true)},
		{row.Field{Kind: row.DateKind}, "2026-11-21", row.DateValue(day)},
		{row.Field{Kind: row.DateKind, Format: "dd.MM.yyyy"}, "21.11.2026", row.DateValue(day)},
		{row.Field{Kind: row.Timestamp}, "2026-11-21T10:00:00+02:00", row.TimestampValue(time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC))},
		{row.Field{Kind: row.Timestamp}, "2026-11-21 08:00:00.123456000", row.TimestampValue(time.Date(2026, 11, 21, 8, 0, 0, 123456000, time.UTC))},
		{row.Field{Kind: row.Timestamp, Format: "epoch"}, "1.1234560", row.TimestampValue(time.UnixMicro(1_123_456).UTC())},
		{row.Field{Kind: row.Timestamp, Format: "yyyyMMdd'T'HHmmss.SSS"}, "20261121T080000.250", row.TimestampValue(time.Date(2026, 11, 21, 8, 0, 0, 250e6, time.UTC))},
	} {
		got, err := field(t, c.f).Parse(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, got, "%s from %q", c.f.Kind, c.text)
	}
}

func TestATimeThatIsFinerThanAMicrosecondIsAnInvalidItem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ format, text string }{
		{"", "2024-01-02T03:04:05.123456789Z"}, {"", "2024-01-02 03:04:05.1234567"}, {"", "2024-01-02T03:04:05,1234567+02:00"}, {"", "2024-01-02T03:04:05.12345600001Z"},
		{"yyyy-MM-dd HH:mm:ss", "2024-01-02 03:04:05.123456789"}, {"epoch", "1.1234567"}, {"epoch_ms", "1.0001"}, {"epoch_us", "1.5"},
	} {
		f := field(t, row.Field{Kind: row.Timestamp, Format: c.format})
		_, err := f.Parse(c.text)
		require.ErrorContains(t, err, "is not a timestamp (it is finer than a microsecond)", c.text)
		require.True(t, exception.IsSkippable(err))
	}
}

func TestATextThatDoesNotFitIsAnInvalidItem(t *testing.T) {
	t.Parallel()
	for kind, texts := range map[row.Kind][]string{
		row.Int: {"x", "1.5", "", "9223372036854775808"}, row.Float: {"x", "NaN", "Inf", "", "0x1p3", "-0X1p3", "0x_1p3", "1_0", "+0x1.8p1", "infinity", "1e999"}, row.Bool: {"yes", "TRUE", "1"},
		row.DateKind: {"21.11.2026", "2026-02-30", ""}, row.Timestamp: {"now", "2026-11-21"},
	} {
		for _, text := range texts {
			_, err := field(t, row.Field{Kind: kind}).Parse(text)
			require.Error(t, err, "%s from %q", kind, text)
			require.True(t, exception.IsSkippable(err))
			require.False(t, exception.IsRetryable(err))
			require.Equal(t, exception.ClassParse, exception.ClassOf(err))
			require.ErrorContains(t, err, "field x")
		}
	}
}

func TestASchemaIsRefusedForWhatItCannotMean(t *testing.T) {
	t.Parallel()
	for want, fields := range map[string][]row.Field{
		"field 1 has no name":       {{Kind: row.Int}},
		`field "a" is listed twice`: {{Name: "a", Kind: row.Int}, {Name: "a", Kind: row.Int}},
		`field "a" has no type`:     {{Name: "a"}},
		"format is for date":        {{Name: "a", Kind: row.Int, Format: "yyyy"}},
		`"qq" is unknown`:           {{Name: "a", Kind: row.DateKind, Format: "yyyyqq"}},
		"a quote is not closed":     {{Name: "a", Kind: row.DateKind, Format: "yyyy'"}},
	} {
		_, err := row.NewSchema(fields...)
		require.ErrorContains(t, err, want)
	}
}

func TestValuesComeBackFromTheirText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.OneOf(
			rapid.Map(rapid.Int64(), row.IntValue), rapid.Map(rapid.Bool(), row.BoolValue),
			rapid.Map(rapid.Float64().Filter(func(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }), row.FloatValue),
			rapid.Map(rapid.Int32Range(-700000, 2900000), func(d int32) row.Value { return row.DateValue(row.Date(d)) }),
			rapid.Map(rapid.Int64Range(-6e16, 2e17), func(us int64) row.Value { return row.TimestampValue(time.UnixMicro(us)) }),
			rapid.Map(rapid.String(), row.StringValue),
		).Draw(t, "value")
		s, err := row.NewSchema(row.Field{Name: "x", Kind: v.Kind()})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Field(0).Parse(string(v.AppendText(nil)))
		if err != nil || got != v {
			t.Fatalf("%v came back as %v (%v)", v, got, err)
		}
		again, err := row.ValueOf(v.Any())
		if err != nil || again != v {
			t.Fatalf("%v came back from Any as %v (%v)", v, again, err)
		}
	})
}

func TestARowIsReadByNameAndClonedApart(t *testing.T) {
	t.Parallel()
	s, err := row.NewSchema(row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "name", Kind: row.String, Nullable: true})
	require.NoError(t, err)
	values := []row.Value{row.IntValue(1), {}}
	r := row.New(s, values)
	clone := r.Clone()
	values[0] = row.IntValue(2)
	id, ok := r.Get("id")
	require.True(t, ok)
	require.Equal(t, int64(2), id.Int())
	require.Equal(t, int64(1), clone.At(0).Int())
	_, ok = r.Get("nobody")
	require.False(t, ok)
	require.Equal(t, "{id: int, name: string null}", s.String())
}
