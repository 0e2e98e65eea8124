package humanize_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/humanize"
)

func TestWordsSurviveAPosixShell(t *testing.T) {
	t.Parallel()
	require.Equal(t, "year=1996", humanize.Quote("year=1996"))
	require.Equal(t, "''", humanize.Quote(""))
	require.Equal(t, "'name=it'\\''s $HOME'", humanize.Quote("name=it's $HOME"))
}

func TestNumbersAndDurationsAreReadable(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		require.Equal(t, want, humanize.Count(n))
	}
	for d, want := range map[time.Duration]string{
		0: "0ms", 400 * time.Microsecond: "0ms", 12 * time.Millisecond: "12ms", 1234 * time.Millisecond: "1.23s",
		12340 * time.Millisecond: "12.3s", 185 * time.Second: "3m05s", 130 * time.Minute: "2h10m",
	} {
		require.Equal(t, want, humanize.Duration(d))
	}
}

func TestCausesAreJoinedOnOneLine(t *testing.T) {
	t.Parallel()
	require.Equal(t, "failed to connect: a refused; b refused", humanize.OneLine("failed to connect:\n\ta refused\n\tb refused\n"))
	require.Equal(t, "CREATE TABLE x ( id bigint, name text )", humanize.OneLine("CREATE TABLE x (\n  id bigint,\n  name text\n)"))
}
