package acceptance

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testtree"
)

// block is a fenced block of a page, with the comment before it.
type block struct{ comment, language, text string }

var fenced = regexp.MustCompile("(?s)(?:<!-- ([^>]*) -->\n)?```([a-z]+)\n(.*?)```\n")

func blocks(t *testing.T, page string) []block {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "howto", page))
	require.NoError(t, err)
	var list []block
	for _, m := range fenced.FindAllStringSubmatch(string(text), -1) {
		list = append(list, block{comment: m[1], language: m[2], text: m[3]})
	}
	require.NotEmpty(t, list)
	return list
}

func (b block) exits(t *testing.T) int {
	t.Helper()
	text, ok := strings.CutPrefix(b.comment, "exits ")
	if !ok {
		return 0
	}
	code, err := strconv.Atoi(text)
	require.NoError(t, err, b.comment)
	return code
}

func (s *scene) writeNamed(list []block) {
	s.t.Helper()
	for _, b := range list {
		first, _, _ := strings.Cut(b.text, "\n")
		name, _, _ := strings.Cut(strings.TrimPrefix(first, "# "), ",")
		if strings.HasPrefix(first, "# ") && strings.HasSuffix(name, ".yaml") {
			s.write(name, b.text)
		}
	}
}

func TestTheCommandsOfTheOperationsPageDoWhatItSays(t *testing.T) {
	t.Parallel()
	inTurn(t, 0, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, nil)
		page := blocks(t, "operations.md")
		s.writeNamed(page)
		writeInput(t, filepath.Join(s.dir, "rows.csv"), longRows)
		s.write("rows.csv", strings.ReplaceAll(s.read("rows.csv"), ".5\n", "\n"))
		code, out := s.run("migrate")
		require.Equal(t, 0, code, out)
		var background *process
		for _, b := range page {
			if b.language != "sh" {
				continue
			}
			want := b.exits(t)
			if b.comment == "killed" {
				background.signal(syscall.SIGKILL)
				background.wait()
			}
			lines := strings.Split(strings.TrimSpace(b.text), "\n")
			for i, line := range lines {
				if words, ok := strings.CutSuffix(line, " &"); ok {
					background = s.start(commandWords(t, words)...)
					background.await("step=load")
					continue
				}
				code, out := s.run(commandWords(t, line)...)
				if i < len(lines)-1 {
					require.Equal(t, 0, code, "%s\n%s", line, out)
					continue
				}
				require.Equal(t, want, code, "%s\n%s", line, out)
				s.assertSays(line, out)
			}
		}
		require.Contains(t, s.said("list", "--job", "pay"), "2026-11-22", "two days followed")
	})
}

// assertSays checks the output of a command of the page, if the page relies on it.
func (s *scene) assertSays(line, out string) {
	s.t.Helper()
	for begin, want := range map[string]string{
		"surfin run pay.yaml day=2026-11-20": "restart it:  surfin restart 1",
		"surfin restart 2\n":                 "is already complete",
		"surfin restart 2 --from book":       "Step check (tasklet): passed",
		"surfin stop 5":                      "job load, execution 5: STOPPED",
		"surfin recover":                     "restart it:  surfin restart 6",
		"surfin abandon 6":                   "ABANDONED",
		"surfin run load.yaml input=rows":    "--again",
		"surfin purge --older-than 90d --d":  "would delete 0 executions",
	} {
		if strings.HasPrefix(line+"\n", begin) && !strings.HasSuffix(line, "&") {
			require.Contains(s.t, out, want, line)
		}
	}
}

func (s *scene) said(args ...string) string {
	s.t.Helper()
	code, out := s.run(args...)
	require.Equal(s.t, 0, code, out)
	return out
}

func (s *scene) read(name string) string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	require.NoError(s.t, err)
	return string(text)
}

func commandWords(t *testing.T, line string) []string {
	t.Helper()
	cmd := testtree.Command(t.Context(), "sh", "-c", `surfin() { printf '%s\n' "$@"; }; `+line)
	out, err := cmd.Output()
	require.NoError(t, err, line)
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

func TestThePagesNameEveryExitCodeOfTheCommand(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), nil)
	var codes []string
	for _, m := range regexp.MustCompile(`(?m)^  (\d)  `).FindAllStringSubmatch(s.said("--help"), -1) {
		codes = append(codes, m[1])
	}
	require.Equal(t, []string{"0", "1", "2", "3", "4", "5", "6"}, codes)
	for _, page := range []string{"operations.md", "kubernetes.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", "howto", page))
		require.NoError(t, err)
		var rows []string
		for _, m := range regexp.MustCompile(`(?m)^\| (\d) \| `).FindAllStringSubmatch(string(text), -1) {
			rows = append(rows, m[1])
		}
		require.Equal(t, codes, rows, page)
	}
}

type manifest struct {
	Kind string `yaml:"kind"`
	Spec struct {
		podJob            `yaml:",inline"`
		ConcurrencyPolicy string `yaml:"concurrencyPolicy"`
		JobTemplate       struct {
			Spec podJob `yaml:"spec"`
		} `yaml:"jobTemplate"`
	} `yaml:"spec"`
}

type podJob struct {
	BackoffLimit     *int `yaml:"backoffLimit"`
	PodFailurePolicy struct {
		Rules []struct {
			Action      string `yaml:"action"`
			OnExitCodes struct {
				Values []int `yaml:"values"`
			} `yaml:"onExitCodes"`
		} `yaml:"rules"`
	} `yaml:"podFailurePolicy"`
	Template struct {
		Spec struct {
			RestartPolicy                 string      `yaml:"restartPolicy"`
			TerminationGracePeriodSeconds int         `yaml:"terminationGracePeriodSeconds"`
			InitContainers                []container `yaml:"initContainers"`
			Containers                    []container `yaml:"containers"`
		} `yaml:"spec"`
	} `yaml:"template"`
}

type container struct {
	Name string   `yaml:"name"`
	Args []string `yaml:"args"`
	Env  []struct {
		Name      string `yaml:"name"`
		Value     string `yaml:"value"`
		ValueFrom any    `yaml:"valueFrom"`
	} `yaml:"env"`
}

func TestTheManifestsOfTheKubernetesPageRun(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.Postgres(t), nil)
	page := blocks(t, "kubernetes.md")
	s.writeNamed(page)
	kinds := map[string]int{}
	for _, b := range page {
		switch {
		case b.language == "yaml" && strings.HasPrefix(b.text, "apiVersion:"):
			for _, m := range manifests(t, b.text) {
				kinds[m.Kind]++
				s.runManifest(m)
			}
		case b.language == "sh":
			for line := range strings.Lines(b.text) {
				s.said(commandWords(t, strings.TrimSpace(line))...)
			}
		}
	}
	require.Equal(t, map[string]int{"Job": 1, "CronJob": 2}, kinds)
	require.Contains(t, s.said("list", "--job", "nightly"), "run=2", "the next night is the next instance")
}

func manifests(t *testing.T, text string) (list []manifest) {
	t.Helper()
	d := yaml.NewDecoder(bytes.NewReader([]byte(text)))
	for {
		var m manifest
		err := d.Decode(&m)
		if errors.Is(err, io.EOF) {
			return list
		}
		require.NoError(t, err)
		list = append(list, m)
	}
}

func (s *scene) runManifest(m manifest) {
	s.t.Helper()
	job := m.Spec.podJob
	times := 1
	if m.Kind == "CronJob" {
		require.Equal(s.t, "Forbid", m.Spec.ConcurrencyPolicy)
		job, times = m.Spec.JobTemplate.Spec, 2
	}
	require.Equal(s.t, "Never", job.Template.Spec.RestartPolicy, "podFailurePolicy needs it")
	require.NotNil(s.t, job.BackoffLimit)
	codes := map[int]string{}
	for _, r := range job.PodFailurePolicy.Rules {
		for _, code := range r.OnExitCodes.Values {
			codes[code] = r.Action
		}
	}
	if len(codes) > 0 {
		require.Equal(s.t, map[int]string{1: "Count", 2: "FailJob", 3: "FailJob", 4: "Count", 5: "FailJob", 6: "Count"}, codes)
		require.Greater(s.t, job.Template.Spec.TerminationGracePeriodSeconds, 30)
	}
	for range times {
		for _, c := range append(job.Template.Spec.InitContainers, job.Template.Spec.Containers...) {
			s.runContainer(c)
		}
	}
}

// runContainer runs it with only its own environment; the volume is the
// scene's folder.
func (s *scene) runContainer(c container) {
	s.t.Helper()
	cmd := testtree.Command(s.t.Context(), surfin)
	for _, word := range c.Args {
		cmd.Args = append(cmd.Args, strings.ReplaceAll(word, "/jobs/", s.dir+"/"))
	}
	cmd.Dir = s.t.TempDir()
	cmd.Env = []string{}
	for _, e := range c.Env {
		if e.ValueFrom != nil {
			require.Equal(s.t, "DATABASE_URL", e.Name)
			e.Value = s.url
		}
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
	}
	cmd.WaitDelay = time.Minute
	out, err := cmd.CombinedOutput()
	require.NoError(s.t, err, "%v\n%s", c.Args, out)
}
