package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestEveryCommandHasAManualPage(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), nil)
	require.Contains(t, s.must("man", s.path("pages")).out, "surfin.1\n")
	files, err := filepath.Glob(s.path("pages/*.1"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	macro := regexp.MustCompile(`^\.(TH|SH|TP|PP|B|nf|fi)\b`)
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		texts[strings.TrimSuffix(filepath.Base(file), ".1")] = string(text)
		for line := range strings.Lines(string(text)) {
			require.True(t, macro.MatchString(line) || line[0] != '.' && line[0] != '\'', "%s: %s", file, line)
		}
	}
	for _, command := range regexp.MustCompile(`(?m)^  ([a-z]+) +[A-Z]`).FindAllStringSubmatch(s.must("--help").out, -1) {
		if command[1] != "completion" && command[1] != "help" {
			require.Contains(t, texts, "surfin-"+command[1])
		}
	}
	require.Contains(t, texts["surfin-skips-list"], ".SH NAME\nsurfin-skips-list \\- List the items that an execution skipped\n.SH SYNOPSIS\nsurfin skips list EXECUTION [flags]\n")
	require.Contains(t, texts["surfin-skips-list"], ".TP\n.B \\-\\-limit N\nat most N items (default 50)\n")
	require.Contains(t, texts["surfin-skips-list"], ".SH SEE ALSO\nsurfin\\-skips(1)\n")
	require.Contains(t, texts["surfin"], "\\-\\-database\\-url URL")
	require.Contains(t, texts["surfin-settings"], ".B log.format, SURFIN_LOG_FORMAT\ntext or json (default text)\n")
	require.NotContains(t, texts["surfin-list"], "\\-\\-database\\-url URL\nURL of", "it is on the page of the program")

	require.Equal(t, cli.ExitUsage, s.run("man").code)
}
