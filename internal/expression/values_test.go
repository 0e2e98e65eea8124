package expression_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func TestFunctionsOfTextsJSONAndDates(t *testing.T) {
	t.Parallel()
	day := func(y int, m time.Month, d int) row.Date { return row.NewDate(y, m, d) }
	for text, want := range map[string]any{
		"try(int(params.name), -1)":        int64(-1),
		"try(int('12'), -1)":               int64(12),
		"try(params.limit, params.year)":   nil,
		"try(1 / (params.year - 1990), 0)": 0.0,
		"split_part('a;b;;d', ';', 0)":     "a", "split_part('a;b;;d', ';', 2)": "", "split_part('a;b;;d', ';', -1)": "d",
		"split_part('a;b;;d', ';', -4)": "a", "split_part('a;b;;d', ';', 4)": nil, "split_part('a;b', ';', -3)": nil,
		"split_part('abc', '--', 0)": "abc", "split_part('abc', '--', -1)": "abc", "split_part(params.name, 'ö', 1) ?? ''": "ße",
		"join(', ', params.name, params.note, 'x')": "Größe, x", "join('-', params.note, nil)": "",
		"pad_left(string(7), 3, '0')": "007", "pad_right('ö', 3, '.')": "ö..", "pad_left('abcd', 3)": "abcd",
		"regexp_extract('tel 12-34', '([0-9]+)-([0-9]+)')": "12", "regexp_extract('tel 12-34', '([0-9]+)-([0-9]+)', 2)": "34",
		"regexp_extract('tel 12-34', '[0-9]+')": "12", "regexp_extract('tel', '[0-9]+')": nil, "regexp_extract('b', '(a)|b')": nil,
		"regexp_replace('a1b22', '([0-9])+', '<$1>')": "a<1>b<2>",
		"hash('')":             "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"hash('abc', 'md5')":   "900150983cd24fb0d6963f7d28e17f72",
		"hash('abc', 'sha1')":  "a9993e364706816aba3e25717850c26c9cd0d89d",
		"hash('abc', 'crc32')": "352441c2",
		`json_get('{"a":{"b":[1,{"c":"x"}]}}', 'a.b[1].c')`:      "x",
		`json_get('{"a":{"b":[1, {"c":"x"}]}}', 'a.b')`:          `[1,{"c":"x"}]`,
		`json_get('[{"id": 12.50}]', '[0].id')`:                  "12.50",
		`json_get('{"a":null}', 'a')`:                            nil,
		`json_get('{"a":1}', 'b')`:                               nil,
		`int(json_get('{"a":1}', 'a') ?? '0')`:                   int64(1),
		"add_months(date('2026-01-31'), 1)":                      day(2026, 2, 28),
		"add_months(date('2024-02-29'), -12)":                    day(2023, 2, 28),
		"add_months(params.at, 1)":                               time.Date(2026, 2, 28, 23, 30, 0, 0, time.UTC),
		"months_between(date('2026-01-31'), date('2026-02-28'))": int64(1),
		"months_between(date('2026-01-31'), date('2026-03-30'))": int64(1),
		"months_between(date('2026-03-15'), date('2026-01-16'))": int64(-1),
		"truncate(date('2026-11-23'), 'week')":                   day(2026, 11, 23),
		"truncate(date('2026-11-29'), 'week')":                   day(2026, 11, 23),
		"truncate(date('2026-11-23'), 'quarter')":                day(2026, 10, 1),
		"truncate(params.at, 'hour')":                            time.Date(2026, 1, 31, 23, 0, 0, 0, time.UTC),
		"weekday(date('2026-11-23'))":                            int64(1), "weekday(date('2026-11-29'))": int64(7),
		"week(date('2027-01-01'))": int64(53), "quarter(params.day)": int64(1), "hour(params.at)": int64(23), "minute(params.at)": int64(30),
		"seconds(params.at - timestamp('2026-01-31T23:29:59.5Z'))": 0.5,
		"date(params.at, 'Asia/Tokyo')":                            day(2026, 2, 1),
		"format(params.at, 'yyyy-MM-dd HH:mm', 'Asia/Tokyo')":      "2026-02-01 08:30",
		"format(params.at, 'epoch')":                               "1769902200", "format(params.day, 'd MMM yyyy')": "31 Jan 2026",
		"timestamp(1769902200000, 'epoch_ms') == params.at":                            true,
		"timestamp('01.02.2026 08:30', 'dd.MM.yyyy HH:mm', 'Asia/Tokyo') == params.at": true,
		"date('3 jan 2026', 'd MMM yyyy')":                                             day(2026, 1, 3),
	} {
		p, err := expression.Compile(text, scope())
		require.NoError(t, err, text)
		got, err := p.Eval(vars())
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestMistakesInFunctionsHaveAPlaceAndACure(t *testing.T) {
	t.Parallel()
	for text, message := range map[string]string{
		"lower(split(params.name, ',')[0])":        "this may be null",
		"splitPart(params.name, ',', 0)":           "write split_part(text, separator, n)",
		"coalesce(params.note, 'x')":               "write a ?? b ?? c",
		"regexp_match(params.name, 'x')":           "write text matches 'x'",
		"concat(params.name, 'x')":                 "write a + b",
		"date_add(params.day, 1)":                  "write date + 3",
		"sha256(params.name)":                      "write hash(text, 'sha256')",
		"regexp_extract(params.name, params.name)": "needs its pattern as a text in quotes",
		"regexp_extract(params.name, '(')":         "missing closing )",
		"regexp_extract(params.name, 'a', 1)":      "the pattern has the groups 0 (the whole match) to 0",
		"hash(params.name, 'sha3')":                "hash supports 'crc32', 'md5', 'sha1', 'sha256'",
		"json_get(params.name, 'a[0')":             "is not a path",
		"json_get(params.name, '')":                "is not a path",
		"truncate(params.day, 'hour')":             "truncate supports 'year', 'quarter', 'month', 'week', 'day', written in quotes",
		"format(params.at, 'yyyy', 'Berlin')":      "there is no time zone \"Berlin\"",
		"join(params.name, 1)":                     "join needs texts, not an int: write string(x)",
		"lower(split_part(params.name, ',', 0))":   "this may be null",
		"try(params.year, 'x')":                    "the alternatives are",
		"try(params.year)":                         "wrong arguments of try",
	} {
		_, err := expression.Compile(text, scope())
		var at *expression.Error
		require.ErrorAs(t, err, &at, text)
		require.Contains(t, at.Msg+" "+at.Hint, message, text)
	}
	for text, message := range map[string]string{
		"split_part(params.name, substr(params.name, 9, 1), 0)": "the separator is empty",
		"pad_left(params.name, params.year * 1000)":             "0 to 65536 are allowed",
		"pad_left(params.name, 9, params.name)":                 "pads with one character",
		"json_get(params.name, 'a')":                            "json_get: ",
		"add_months(params.day, params.year * 60)":              "outside the years 1 to 9999",
	} {
		p, err := expression.Compile(text, scope())
		require.NoError(t, err, text)
		_, err = p.Eval(vars())
		require.ErrorContains(t, err, message, text)
	}
}

func TestPartsOfATextAreThoseOfSplit(t *testing.T) {
	t.Parallel()
	p, err := expression.Compile("split_part(a, ';;', b)", pair[string, int64]())
	require.NoError(t, err)
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringMatching(`[a;]{0,12}`).Draw(rt, "text")
		n := rapid.IntRange(0, 6).Draw(rt, "n")
		got, err := p.Eval(map[string]any{"a": text, "b": int64(n)})
		require.NoError(rt, err)
		parts := strings.Split(text, ";;")
		if n >= len(parts) {
			require.Nil(rt, got)
			return
		}
		require.Equal(rt, parts[n], got)
	})
}

func TestJSONOfATextIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	p, err := expression.Compile("json_get(a, b + '')", pair[string, string]())
	require.ErrorContains(t, err, "needs its path as a text in quotes")
	require.Nil(t, p)
	p, err = expression.Compile("json_get(a, 'k[1].v')", pair[string, string]())
	require.NoError(t, err)
	rapid.Check(t, func(rt *rapid.T) {
		value := rapid.String().Draw(rt, "value")
		doc, err := json.Marshal(map[string]any{"k": []any{0, map[string]any{"v": value}}})
		require.NoError(rt, err)
		got, err := p.Eval(map[string]any{"a": string(doc)})
		require.NoError(rt, err)
		require.Equal(rt, strings.ToValidUTF8(value, "\uFFFD"), got)
	})
}

func TestMonthsAddedAreMonthsBetween(t *testing.T) {
	t.Parallel()
	p, err := expression.Compile("months_between(a, add_months(a, b))", pair[row.Date, int64]())
	require.NoError(t, err)
	rapid.Check(t, func(rt *rapid.T) {
		a := row.Date(rapid.Int32Range(-200_000, 200_000).Draw(rt, "a"))
		n := rapid.Int64Range(0, 600).Draw(rt, "n")
		got, err := p.Eval(map[string]any{"a": a, "b": n})
		require.NoError(rt, err)
		require.Equal(rt, n, got)
	})
}
