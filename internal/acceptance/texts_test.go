package acceptance

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testtree"
)

var update = flag.Bool("update", false, "write testdata/texts again")

// A file of testdata/texts begins with the files that its commands need, each
// after a line "-- NAME --". After the line "-- commands --" follow lines "$
// COMMAND" with their output, and "exit N" unless N is 0.
func TestTheTextsOfTheCommand(t *testing.T) {
	t.Parallel()
	stories, err := filepath.Glob("testdata/texts/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, stories)
	for _, path := range stories {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			before, after, found := strings.Cut(string(text), commandsFollow)
			require.True(t, found, "%s lacks the line %q", path, commandsFollow)
			got := before + commandsFollow + play(t, storyFiles(t, before), after)
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(got), 0o644)) //nolint:gosec // a file of the repository
				return
			}
			require.Equal(t, string(text), got, "texts changed: read the difference, then go test -run TestTheTextsOfTheCommand -update ./internal/acceptance")
		})
	}
}

const commandsFollow = "-- commands --\n"

// storyFiles returns the files before the commands, by name.
func storyFiles(t *testing.T, text string) map[string]string {
	t.Helper()
	files, name := map[string]string{}, ""
	for line := range strings.Lines(text) {
		if of, ok := strings.CutPrefix(line, "-- "); ok && strings.HasSuffix(of, " --\n") {
			name = strings.TrimSuffix(of, " --\n")
			files[name] = ""
			continue
		}
		if name != "" { // the lines before the first file are a comment
			files[name] += line
		}
	}
	return files
}

func play(t *testing.T, files map[string]string, commands string) string {
	t.Helper()
	s := newScene(t, testdb.SQLite(t), files)
	bin := filepath.Join(s.dir, "bin")
	require.NoError(t, os.Mkdir(bin, 0o700))
	require.NoError(t, os.Symlink(surfin, filepath.Join(bin, "surfin")))
	var b strings.Builder
	for line := range strings.Lines(commands) {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		cmd := testtree.Command(context.Background(), "sh", "-c", command)
		cmd.Dir = s.dir
		cmd.Env = append(ofTheMachine(os.Environ()), "PATH="+bin+":"+os.Getenv("PATH"), "DATABASE_URL="+s.url, "SURFIN_AUTO_MIGRATE=true", "USER=ann", "TZ=UTC")
		out, err := cmd.CombinedOutput()
		b.WriteString(line + steady(s.dir, string(out)))
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			fmt.Fprintf(&b, "exit %d\n", exit.ExitCode())
		} else {
			require.NoError(t, err)
		}
	}
	return b.String()
}

func unsteady() []struct {
	re *regexp.Regexp
	as string
} {
	return []struct {
		re *regexp.Regexp
		as string
	}{
		{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "UUID"},
		{regexp.MustCompile(`\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| UTC)?`), "TIME"},
		{regexp.MustCompile(`\b(\d+h)?(\d+m)?\d+(\.\d+)?(ms|µs|ns|s)\b`), "DURATION"},
		{regexp.MustCompile(`(?m)(  DURATION  +)([\d,.]+|-)$`), "${1}SPEED"},
		{regexp.MustCompile(`"(duration|duration_seconds|rows_per_second|items_per_second)":( ?)[\d.e+-]+`), `"$1":${2}0`},
		{regexp.MustCompile(`"pid":( ?)\d+`), `"pid":${1}1`},
		{regexp.MustCompile(`\S+@HOST\b`), "USER@HOST"},
		{regexp.MustCompile(`─+`), "─────"},
		{regexp.MustCompile(`sqlite /\S+/\S+\.db`), "sqlite FILE"},
		{regexp.MustCompile(`\b127\.0\.0\.1:\d+`), "127.0.0.1:PORT"},
		{regexp.MustCompile(`\S+@\S+ \(process \d+\)`), "HOST"},
		{regexp.MustCompile(` {2,}`), "  "},
		{regexp.MustCompile(`(?m) +$`), ""},
	}
}

func steady(dir, out string) string {
	if host, err := os.Hostname(); err == nil {
		out = strings.ReplaceAll(out, host, "HOST")
	}
	out = strings.ReplaceAll(out, dir, "DIR")
	for _, u := range unsteady() {
		out = u.re.ReplaceAllString(out, u.as)
	}
	if out != "" && !strings.HasSuffix(out, "\n") {
		out += "\n"
	}
	return out
}
