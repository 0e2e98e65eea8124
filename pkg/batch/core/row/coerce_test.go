package row_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func one(t *testing.T, f row.Field) *row.Field {
	t.Helper()
	f.Name = "x"
	schema, err := row.NewSchema(f)
	require.NoError(t, err)
	return schema.Field(0)
}

func TestAFieldSaysWhatIsReadAsNullAndWhatStandsForIt(t *testing.T) {
	counts := one(t, row.Field{Kind: row.Int, Nulls: []string{"n/a", ""}, Default: row.IntValue(7)})
	for text, want := range map[string]int64{"n/a": 7, "": 7, "3": 3} {
		v, err := counts.Parse(text)
		require.NoError(t, err)
		require.Equal(t, row.IntValue(want), v, text)
	}
	_, err := counts.Parse("three")
	require.ErrorContains(t, err, `field x: "three" is not an int`)
	v, err := counts.Missing()
	require.NoError(t, err)
	require.Equal(t, row.IntValue(7), v)
	v, err = one(t, row.Field{Kind: row.Int, Nulls: []string{"-999"}, Nullable: true}).Known(row.IntValue(-999))
	require.NoError(t, err)
	require.True(t, v.IsNull())
}

func TestAFieldCoercesWhatDoesNotFit(t *testing.T) {
	for _, c := range []struct {
		f    row.Field
		text string
		want row.Value
		bad  bool
	}{
		{f: row.Field{Kind: row.Int, Coerce: row.CoerceConvert}, text: "12.0", want: row.IntValue(12)},
		{f: row.Field{Kind: row.Int, Coerce: row.CoerceConvert}, text: " 1e3 ", want: row.IntValue(1000)},
		{f: row.Field{Kind: row.Int, Coerce: row.CoerceConvert}, text: "0x1p3", bad: true},
		{f: row.Field{Kind: row.Int, Coerce: row.CoerceConvert}, text: "12.5", bad: true},
		{f: row.Field{Kind: row.Int, Coerce: row.CoerceConvert}, text: "9007199254740993.0", bad: true},
		{f: row.Field{Kind: row.Int}, text: "12.0", bad: true},
		{f: row.Field{Kind: row.Bool, Coerce: row.CoerceConvert}, text: "Yes", want: row.BoolValue(true)},
		{f: row.Field{Kind: row.Bool, Coerce: row.CoerceConvert}, text: "0", want: row.BoolValue(false)},
		{f: row.Field{Kind: row.Bool, Coerce: row.CoerceConvert}, text: "perhaps", bad: true},
		{f: row.Field{Kind: row.Int, Coerce: row.CoerceNull, Nullable: true}, text: "?", want: row.Value{}},
		{f: row.Field{Kind: row.DateKind, Coerce: row.CoerceDefault, Default: row.DateValue(0)}, text: "31.02.2026", want: row.DateValue(0)},
	} {
		v, err := one(t, c.f).Parse(c.text)
		if c.bad {
			require.Error(t, err, c.text)
			continue
		}
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, v, c.text)
	}
}

func TestAFieldRefusesSettingsThatMeanNothing(t *testing.T) {
	for want, f := range map[string]row.Field{
		`default is a string, not an int`:    {Kind: row.Int, Default: row.StringValue("a")},
		`so it is never null`:                {Kind: row.Int, Nullable: true, Default: row.IntValue(1)},
		`but it has no default`:              {Kind: row.Int, Coerce: row.CoerceDefault},
		`its type must allow null`:           {Kind: row.Int, Coerce: row.CoerceNull},
		`a zone is for timestamp`:            {Kind: row.DateKind, Zone: time.UTC},
		`SSS must follow a point`:            {Kind: row.Timestamp, Format: "yyyyMMddHHmmssSSS"},
		`"Mon" is not allowed in a format`:   {Kind: row.DateKind, Format: "'Mon' yyyy"},
		`"QQ" is unknown (allowed: yyyy yy `: {Kind: row.DateKind, Format: "yyyy QQ"},
	} {
		f.Name = "x"
		_, err := row.NewSchema(f)
		require.ErrorContains(t, err, want)
	}
}

func TestFormatsOfDatesAndTimes(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	at := func(text string) row.Value {
		x, err := time.Parse(time.RFC3339Nano, text)
		require.NoError(t, err)
		return row.TimestampValue(x)
	}
	day := func(text string) row.Value {
		d, err := row.ParseDate(text)
		require.NoError(t, err)
		return row.DateValue(d)
	}
	for _, c := range []struct {
		f     row.Field
		text  string
		want  row.Value
		wrote string // "" means text
	}{
		{f: row.Field{Kind: row.DateKind, Format: "d MMM yyyy"}, text: "3 jan 2026", want: day("2026-01-03"), wrote: "3 Jan 2026"},
		{f: row.Field{Kind: row.DateKind, Format: "EEEE, d. MMMM yyyy"}, text: "Saturday, 3. January 2026", want: day("2026-01-03")},
		{f: row.Field{Kind: row.DateKind, Format: "MM/dd/yy"}, text: "12/31/69", want: day("1969-12-31")},
		{f: row.Field{Kind: row.DateKind, Format: "MM/dd/yy"}, text: "12/31/68", want: day("2068-12-31")},
		{f: row.Field{Kind: row.Timestamp, Format: "MM/dd/yyyy hh:mm a"}, text: "01/03/2026 01:05 PM", want: at("2026-01-03T13:05:00Z")},
		{f: row.Field{Kind: row.Timestamp, Format: "dd/MMM/yyyy:HH:mm:ss XX"}, text: "03/Jan/2026:13:05:09 +0100", want: at("2026-01-03T12:05:09Z"), wrote: "03/Jan/2026:12:05:09 Z"},
		{f: row.Field{Kind: row.Timestamp, Format: "epoch"}, text: "1767445509.25", want: at("2026-01-03T13:05:09.25Z")},
		{f: row.Field{Kind: row.Timestamp, Format: "epoch"}, text: "-1.5", want: at("1969-12-31T23:59:58.5Z")},
		{f: row.Field{Kind: row.Timestamp, Format: "epoch_ms"}, text: "1767445509001", want: at("2026-01-03T13:05:09.001Z")},
		{f: row.Field{Kind: row.DateKind, Format: "epoch", Zone: berlin}, text: "1767395000", want: day("2026-01-03"), wrote: "1767394800"},
		{f: row.Field{Kind: row.Timestamp, Format: "yyyy-MM-dd HH:mm", Zone: berlin}, text: "2026-07-01 10:00", want: at("2026-07-01T08:00:00Z")},
		{f: row.Field{Kind: row.Timestamp, Zone: berlin}, text: "2026-07-01 10:00:00", want: at("2026-07-01T08:00:00Z"), wrote: "2026-07-01T08:00:00Z"},
		{f: row.Field{Kind: row.Timestamp, Zone: berlin}, text: "2026-07-01T10:00:00Z", want: at("2026-07-01T10:00:00Z")},
		{f: row.Field{Kind: row.Timestamp, Format: "yyyy-MM-dd HH:mm", Zone: berlin}, text: "2026-10-25 02:30", want: at("2026-10-25T00:30:00Z")}, // the first of two
	} {
		f := one(t, c.f)
		v, err := f.Parse(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, v, c.text)
		if c.wrote == "" {
			c.wrote = c.text
		}
		require.Equal(t, c.wrote, string(f.AppendText(nil, v)))
	}
	_, err = one(t, row.Field{Kind: row.Timestamp, Format: "yyyy-MM-dd HH:mm", Zone: berlin}).Parse("2026-03-29 02:30")
	require.ErrorContains(t, err, "does not exist in Europe/Berlin: the clock skips it")
	for _, text := range []string{"", "1.", "1.x", "x", "253402300800", "--1"} {
		_, err = one(t, row.Field{Kind: row.Timestamp, Format: "epoch", Nulls: []string{}}).Parse(text)
		require.Error(t, err, text)
	}
}
