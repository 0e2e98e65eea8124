package acceptance

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestTheCommandsOfTheHowTosPrintWhatIsShown(t *testing.T) {
	t.Parallel()
	for i, page := range []string{"flows.md", "partitions.md", "bad-data.md", "../quickstart.md"} {
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			inTurn(t, i, func(t *testing.T, url string) {
				s := newScene(t, url, nil)
				code, out := s.run("migrate")
				require.Zero(t, code, out)
				s.followPage(blocks(t, page))
			})
		})
	}
}

func TestTheJobFilesOfTheComparisonsAreValid(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"coming-from-spring-batch.md", "coming-from-dbt-airflow-benthos.md"} {
		s, jobs := newScene(t, testdb.SQLite(t), nil), []string{"validate"}
		list := blocks(t, "../"+page)
		s.writeNamed(list)
		for _, b := range list {
			if name, text, _ := strings.Cut(b.text, "\n"); b.language == "yaml" && strings.Contains(text, "job: ") {
				jobs = append(jobs, strings.TrimPrefix(name, "# "))
			}
		}
		require.Greater(t, len(jobs), 3, page)
		s.said(jobs...)
	}
}

// followPage follows a page: a block that begins with "# NAME.yaml", or has the comment "file NAME", is
// written; one with the comment "is jobs/cookbook/NAME" is that file of the project, and is written as NAME;
// the lines of a block of sh are run, and the comment "exits N" is about the last one; with "killed when
// TABLE has rows" the first line is started and killed then; a block of text is the output of those lines,
// with "..." for lines that are left out.
func (s *scene) followPage(page []block) {
	s.t.Helper()
	printed, commands := "", 0
	for _, b := range page {
		switch {
		case strings.HasPrefix(b.comment, "file "):
			s.writeBlock(strings.TrimPrefix(b.comment, "file "), b.text)
		case strings.HasPrefix(b.comment, "is "):
			text, err := os.ReadFile(filepath.Join("..", "..", strings.TrimPrefix(b.comment, "is ")))
			require.NoError(s.t, err)
			require.Equal(s.t, string(text), b.text, b.comment)
			s.writeBlock(strings.TrimPrefix(b.comment, "is "+cookbook+"/"), b.text)
		case b.language == "yaml":
			s.writeNamed([]block{b})
		case strings.HasPrefix(b.comment, "killed when "):
			s.killWhenRows(b)
		case b.language == "sh":
			printed = s.runLines(b)
			commands++
		case b.language == "text":
			s.assertPrinted(b.text, printed)
		}
	}
	require.Positive(s.t, commands)
}

func (s *scene) writeBlock(name, text string) {
	s.t.Helper()
	require.NoError(s.t, os.MkdirAll(filepath.Dir(filepath.Join(s.dir, name)), 0o755))
	s.write(name, text)
}

// killWhenRows starts the first line of the block, and kills it when the table
// in its comment has rows.
func (s *scene) killWhenRows(b block) {
	s.t.Helper()
	name, _, _ := strings.Cut(strings.TrimPrefix(b.comment, "killed when "), " ")
	line, _, background := strings.Cut(b.text, " &\n")
	require.True(s.t, background, b.text)
	p := s.start(commandWords(s.t, line)...)
	require.Eventually(s.t, func() bool {
		code, out := s.run("sql", "select 'begun' word from "+name+" limit 1")
		return code == 0 && strings.Contains(out, "begun")
	}, time.Minute, 10*time.Millisecond)
	p.signal(syscall.SIGKILL)
	p.wait()
}

func (s *scene) runLines(b block) (printed string) {
	s.t.Helper()
	want := 0
	if text, ok := strings.CutPrefix(b.comment, "exits "); ok {
		var err error
		want, err = strconv.Atoi(text)
		require.NoError(s.t, err, b.comment)
	}
	lines := strings.Split(strings.TrimSpace(b.text), "\n")
	for i, line := range lines {
		code, out := 0, ""
		if strings.HasPrefix(line, "surfin ") {
			code, out = s.run(commandWords(s.t, line)...)
		} else {
			out = s.shell(line)
		}
		if i == len(lines)-1 {
			require.Equal(s.t, want, code, "%s\n%s", line, out)
		} else {
			require.Zero(s.t, code, "%s\n%s", line, out)
		}
		printed += out
	}
	return printed
}

var (
	shownTimes = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\dZ?|\d\d:\d\d:\d\d|\b[0-9.]+m?s\b`)
	spaces     = regexp.MustCompile(` +`)
)

// assertPrinted checks that the lines are among the printed ones, in their order: adjacent unless "..." is
// between them. Times are ignored.
func (s *scene) assertPrinted(shown, printed string) {
	s.t.Helper()
	plain := func(text string) []string {
		text = spaces.ReplaceAllString(shownTimes.ReplaceAllString(text, "TIME"), " ")
		text = strings.ReplaceAll(text, s.dir+"/", "")
		var lines []string
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, line)
			}
		}
		return lines
	}
	all := "\n" + strings.Join(plain(printed), "\n") + "\n"
	rest := all
	for part := range strings.SplitSeq(strings.Join(plain(shown), "\n"), "\n...") {
		part = "\n" + strings.Trim(part, "\n") + "\n"
		_, behind, found := strings.Cut(rest, part)
		require.True(s.t, found, "this is not printed:\n%s\nbut this is:\n%s", part, all)
		rest = "\n" + behind
	}
}
