package row_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

var isoLayouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00",
}

func damaged(t *rapid.T, pattern string) string {
	text := []byte(rapid.StringMatching(pattern).Draw(t, "text"))
	if rapid.IntRange(0, 3).Draw(t, "damage") == 0 {
		text[rapid.IntRange(0, len(text)-1).Draw(t, "at")] = rapid.SampledFrom([]byte("0939-:. TZ+,x\xff")).Draw(t, "byte")
	}
	return string(text)
}

func TestADateIsReadAsPackageTimeReadsIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := damaged(t, `[0-9]{4}-[01][0-9]-[0-3][0-9]`)
		want, failure := time.Parse(time.DateOnly, text)
		got, err := row.ParseDate(text)
		require.Equal(t, failure == nil, err == nil, "%q: %v, %v", text, failure, err)
		if err == nil {
			require.Equal(t, row.DateOf(want), got, text)
			require.Equal(t, text, got.String())
		}
	})
}

func TestATimestampIsReadAsPackageTimeReadsIt(t *testing.T) {
	t.Parallel()
	finer := regexp.MustCompile(`[.,][0-9]{6}0*[1-9]`)
	zone, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		text := damaged(t, `[0-9]{4}-(0[1-9]|1[0-2])-[0-2][0-9][T ][0-2][0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,10})?(Z|\+02:00)?`)
		f := row.Field{Name: "at", Kind: row.Timestamp}
		read := func() (time.Time, error) {
			v, err := f.Parse(text)
			return v.Time(), err
		}
		var want time.Time
		failure := error(nil)
		for _, layout := range isoLayouts {
			if want, failure = time.Parse(layout, strings.TrimSpace(text)); failure == nil {
				break
			}
		}
		if failure == nil && finer.MatchString(text) {
			failure = errors.New("it does not fit")
		}
		got, err := read()
		require.Equal(t, failure == nil, err == nil, "%q: %v, %v", text, failure, err)
		if err != nil {
			return
		}
		require.Equal(t, want.UnixMicro(), got.UnixMicro(), text)
		f.Zone = zone
		if at, err := read(); err == nil && want.Year() > 1950 {
			_, clock, _ := strings.Cut(strings.ReplaceAll(text, "T", " "), " ")
			require.Equal(t, strings.ContainsAny(clock, "Z+-"), at.Equal(got), text)
		}
	})
}

func TestDatesAndTimestampsAreWrittenAsPackageTimeWritesThem(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := row.Date(rapid.Int32Range(-800_000, 3_000_000).Draw(t, "day"))
		require.Equal(t, d.Time().Format(time.DateOnly), d.String())
		require.Equal(t, d.String(), string(row.DateValue(d).AppendText(nil)))
		micros := int64(d)*86_400_000_000 + rapid.Int64Range(0, 86_399_999_999).Draw(t, "micros")
		if rapid.Bool().Draw(t, "whole") {
			micros -= micros % 1_000_000
		}
		at := time.UnixMicro(micros).UTC()
		require.Equal(t, at.Format(row.TimestampLayout), row.TimestampValue(at).String())
		require.Equal(t, d, row.DayOfMicros(int64(d)*86_400_000_000))
	})
}

func TestDatesAreReadAndWrittenWithoutAnAllocation(t *testing.T) { // not parallel: it counts
	date, at := row.Field{Name: "day", Kind: row.DateKind}, row.Field{Name: "at", Kind: row.Timestamp}
	buf := make([]byte, 0, 64)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		v, err := date.Parse("2024-02-29")
		buf = v.AppendText(buf[:0])
		w, err2 := at.Parse("2024-02-29 13:14:15.123Z")
		buf = w.AppendText(buf)
		if err != nil || err2 != nil || string(buf) != "2024-02-292024-02-29T13:14:15.123Z" {
			panic(string(buf))
		}
	}))
}
