package expression_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/expression"
)

// Rule D5.
func TestTimesAreTakenApartByTheClockOfTheJob(t *testing.T) {
	t.Parallel()
	for zone, cases := range map[string]map[string]string{
		"Europe/Berlin": {
			"timestamp('2026-07-01 00:30:00')":                                   "2026-06-30T22:30:00Z",
			"timestamp('2026-07-01T00:30:00Z')":                                  "2026-07-01T00:30:00Z",
			"timestamp('01.07.2026 00:30', 'dd.MM.yyyy HH:mm')":                  "2026-06-30T22:30:00Z",
			"timestamp('01.07.2026 00:30', 'dd.MM.yyyy HH:mm', 'UTC')":           "2026-07-01T00:30:00Z",
			"timestamp(date(timestamp('2026-07-01 00:30:00')))":                  "2026-06-30T22:00:00Z",
			"string(date(timestamp('2026-07-01 00:30:00')))":                     "2026-07-01",
			"string(day(timestamp('2026-07-01 00:30:00')))":                      "1",
			"string(hour(timestamp('2026-07-01T00:30:00Z')))":                    "2",
			"format(timestamp('2026-07-01T00:30:00Z'), 'HH:mm')":                 "02:30",
			"truncate(timestamp('2026-07-01 00:30:00'), 'month')":                "2026-06-30T22:00:00Z",
			"truncate(timestamp('2026-10-25T01:45:00Z'), 'hour')":                "2026-10-25T01:00:00Z", // the second 02:45
			"truncate(timestamp('2026-10-25T00:45:00Z'), 'hour')":                "2026-10-25T00:00:00Z", // the first one
			"add_months(timestamp('2026-01-31 08:00:00'), 5)":                    "2026-06-30T06:00:00Z",
			"add_months(timestamp('2026-10-25T01:45:00Z'), 0)":                   "2026-10-25T01:45:00Z",
			"add_months(timestamp('2026-09-25 02:30:00'), 1)":                    "2026-10-25T00:30:00Z",
			"try(string(add_months(timestamp('2026-02-28 02:30:00'), 1)), 'no')": "2026-03-28T01:30:00Z",
		},
		"America/Sao_Paulo": { // midnight of 2018-11-04 is left out
			"truncate(timestamp('2018-11-04 12:00:00'), 'day')": "2018-11-04T03:00:00Z",
			"timestamp(date('2018-11-04'))":                     "2018-11-04T03:00:00Z",
		},
		"UTC": {"timestamp('2026-07-01 00:30:00')": "2026-07-01T00:30:00Z", "string(hour(timestamp('2026-07-01T00:30:00Z')))": "0"},
	} {
		location, err := time.LoadLocation(zone)
		require.NoError(t, err)
		for text, want := range cases {
			p, err := expression.Compile(text, expression.Scope{expression.Zone: {Zone: location}})
			require.NoError(t, err, text)
			x, err := p.Eval(nil)
			require.NoError(t, err, text)
			if at, is := x.(time.Time); is {
				x = at.UTC().Format(time.RFC3339)
			}
			require.Equal(t, want, x, "%s in %s", text, zone)
		}
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for _, text := range []string{"timestamp('2026-03-29 02:30:00')", "add_months(timestamp('2026-01-29 02:30:00'), 2)"} {
		_, err = expression.Compile(text, expression.Scope{expression.Zone: {Zone: berlin}})
		require.ErrorContains(t, err, "2026-03-29 02:30:00 does not exist in Europe/Berlin", text)
	}
}
