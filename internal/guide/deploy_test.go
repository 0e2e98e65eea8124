package guide

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testtree"
)

var deployed = [...]string{
	"deploy/docker/compose.yaml", "deploy/kubernetes/surfin.yaml", "deploy/kubernetes/postgres.yaml",
	"deploy/systemd/surfin-worker.service", "deploy/systemd/surfin-server.service",
}

func TestTheFilesOfDeployNameCommandsFlagsAndVariablesThatThereAre(t *testing.T) {
	t.Parallel()
	settings := page(t, "docs/reference/settings.md")
	variable := regexp.MustCompile(`\bSURFIN_[A-Z_]+\b`)
	seen := map[string]bool{}
	for _, file := range deployed {
		text := page(t, file)
		for _, name := range variable.FindAllString(text, -1) {
			open := regexp.MustCompile(`_TOKENS_[A-Z]+$`).ReplaceAllString(name, "_TOKENS_NAME")
			require.Contains(t, settings, "`"+open+"`", file)
		}
		for _, args := range commandsOf(t, file, text) {
			seen[args[0]] = true
			reference := section(t, page(t, "docs/reference/commands.md"), "## surfin "+args[0])
			for _, arg := range args[1:] {
				if strings.HasPrefix(arg, "--") {
					require.Contains(t, reference, "| `"+arg+" ", "%s: surfin %s", file, args[0])
				}
			}
		}
	}
	require.Equal(t, map[string]bool{"migrate": true, "serve": true, "worker": true}, seen)
}

// A worker that is stopped has longer than its --drain.
func TestTheTimeToStopIsLongerThanTheDrain(t *testing.T) {
	t.Parallel()
	grace := regexp.MustCompile(`(?:terminationGracePeriodSeconds: |stop_grace_period: |TimeoutStopSec=)(\d+)`)
	for _, file := range deployed {
		text := page(t, file)
		for _, args := range commandsOf(t, file, text) {
			if i := slices.Index(args, "--drain"); i > 0 {
				drain, err := time.ParseDuration(args[i+1])
				require.NoError(t, err)
				times := grace.FindAllStringSubmatch(text, -1)
				require.NotEmpty(t, times, file)
				for _, match := range times {
					stop, err := time.ParseDuration(match[1] + "s")
					require.NoError(t, err)
					require.Greater(t, stop, drain, file)
				}
			}
		}
	}
}

func TestNothingOfDeployRunsAsRoot(t *testing.T) {
	t.Parallel()
	require.Regexp(t, `(?m)^USER [1-9]\d*:[1-9]\d*$`, page(t, "deploy/docker/Dockerfile"))
	require.Contains(t, page(t, "deploy/docker/Dockerfile"), "CGO_ENABLED=0")
	for _, file := range deployed {
		text := page(t, file)
		if strings.HasSuffix(file, ".service") {
			require.Contains(t, text, "DynamicUser=yes", file)
		}
		if strings.Contains(file, "kubernetes") {
			pods := strings.Count(text, "containers:")
			require.Equal(t, pods, strings.Count(text, "runAsNonRoot: true"), file)
			require.Equal(t, pods, strings.Count(text, "allowPrivilegeEscalation: false"), file)
		}
	}
}

// systemd itself reads the units, where it is installed.
func TestSystemdReadsTheUnits(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	for _, file := range deployed {
		if !strings.HasSuffix(file, ".service") {
			continue
		}
		program, err := os.Executable() // the unit's program is not installed here
		require.NoError(t, err)
		unit := filepath.Join(t.TempDir(), filepath.Base(file))
		require.NoError(t, os.WriteFile(unit, []byte(strings.Replace(page(t, file), "/usr/local/bin/surfin", program, 1)), 0o600))
		out, err := testtree.Command(t.Context(), analyze, "verify", unit).CombinedOutput()
		require.NoError(t, err, string(out))
		require.NotContains(t, string(out), filepath.Base(file), "systemd has remarks")
	}
}

// commandsOf returns the arguments of each start of the command in a file: ExecStart of a unit, else the
// lists of args and command in YAML.
func commandsOf(t *testing.T, file, text string) (list [][]string) {
	t.Helper()
	if strings.HasSuffix(file, ".service") {
		match := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/surfin (.*)$`).FindStringSubmatch(text)
		require.NotNil(t, match, file)
		return [][]string{strings.Fields(match[1])}
	}
	for d := yaml.NewDecoder(bytes.NewReader([]byte(text))); ; {
		var doc map[string]any
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return list
		}
		require.NoError(t, err, file)
		list = appendCommands(list, doc, "")
	}
}

func appendCommands(list [][]string, node any, key string) [][]string {
	switch x := node.(type) {
	case map[string]any:
		for k, v := range x {
			list = appendCommands(list, v, k)
		}
	case []any:
		var args []string
		for _, v := range x {
			if text, ok := v.(string); ok {
				args = append(args, text)
			}
			list = appendCommands(list, v, "")
		}
		if (key == "args" || key == "command") && len(args) > 0 && args[0] != "pg_isready" {
			list = append(list, args)
		}
	}
	return list
}
