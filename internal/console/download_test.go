package console_test

import (
	"bytes"
	"encoding/csv"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/console"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
)

func TestLogSkipsAndDefinitionAreDownloads(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		hide := func(text string) string { return strings.ReplaceAll(text, "spelling", "***") }
		s := newScene(t, url, func(c *console.Config) {
			c.Mask, c.MaskJSON = hide, func(text []byte) []byte { return []byte(hide(string(text))) }
		})
		s.write("three.csv", "id\n1\nspelling\n<u>\nc\n")
		e := s.run("load", map[string]string{"input": filepath.Join(s.dir, "three.csv")})
		at := "/executions/" + text(e)

		var log answer
		require.Eventually(t, func() bool { // lines are stored up to a second later
			log = s.file(at + "/log.txt")
			return strings.Contains(log.text, "[load]")
		}, time.Minute, 50*time.Millisecond)
		require.Contains(t, log.header.Get("Content-Disposition"), `filename="load-`+text(e)+`-log.txt"`)
		require.NotContains(t, s.file(at+"/log.txt?step=report").text, "[load]")

		rows, err := csv.NewReader(strings.NewReader(s.file(at + "/skips.csv?phase=read").text)).ReadAll()
		require.NoError(t, err)
		require.Len(t, rows, 4)
		require.Equal(t, "redriven_by", rows[0][9])
		require.NotContains(t, s.file(at+"/skips.csv").text, "spelling")
		require.Equal(t, 1, strings.Count(s.file(at+"/skips.csv?phase=write").text, "\n"))

		edit := s.file(at + "/skips.jsonl")
		var export bytes.Buffer
		n, err := s.app.Service.ExportSkips(t.Context(), operator.SkipsRequest{Execution: e}, &export)
		require.NoError(t, err)
		require.Equal(t, 3, n)
		require.Equal(t, hide(export.String()), edit.text)
		items, err := operator.ReadExport("download", strings.NewReader(edit.text))
		require.NoError(t, err)
		require.Len(t, items, 3)

		definition := s.get(at + "/definition").is(http.StatusOK).clean()
		link := regexp.MustCompile(`href="(/executions/\d+/definition.txt\?file=[^"]*)" download`).FindStringSubmatch(definition.text)
		require.NotNil(t, link, definition.text)
		require.Equal(t, loadJob, s.file(link[1]).text)
		require.Equal(t, loadJob, s.file(at+"/definition.txt").text)
		for page, file := range map[string]string{"/log": "/log.txt", "/skips": "/skips.csv"} {
			s.get(at + page).is(http.StatusOK).clean().says(`href="` + at + file + `" download`)
		}
		skip := s.get("/skips/1").is(http.StatusOK).clean().says(`href="/skips/1/item.txt" download`)
		require.NotContains(t, skip.text, "spelling")
		require.Equal(t, "***", s.file("/skips/1/item.txt").text)
	})
}

// Rows come from anywhere, and a spreadsheet runs cells that begin like a formula.
func TestNoCellOfATableIsAFormula(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t))
	at := "/executions/" + text(s.run("load", nil))
	db := testengine.New(t, s.url)
	for stored, cell := range map[string]string{
		"=1+1": "'=1+1", "+1-1": "'+1-1", "-cmd|' /C calc'!A0": "'-cmd|' /C calc'!A0", "@SUM(A1)": "'@SUM(A1)", "-1.5e3": "-1.5e3", "+7": "+7", "x=1": "x=1", "-": "'-", "＝1+1": "'＝1+1",
	} {
		db.Exec("UPDATE surfin_skipped_item SET path = '" + strings.ReplaceAll(stored, "'", "''") + "'")
		rows, err := csv.NewReader(strings.NewReader(s.file(at + "/skips.csv").text)).ReadAll()
		require.NoError(t, err)
		require.Equal(t, cell, rows[1][3])
	}
}

// A download that cannot begin is a page.
func TestADownloadThatCannotBeginIsAPage(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t))
	at := "/executions/" + text(s.run("load", nil))
	for _, pattern := range console.Downloads() {
		s.get(strings.NewReplacer("{execution}", "9999", "{skip}", "9999").Replace(pattern)).is(http.StatusNotFound).clean()
		s.call("", http.MethodGet, strings.NewReplacer("{execution}", "1", "{skip}", "1").Replace(pattern)).is(http.StatusUnauthorized).clean()
	}
	s.get(at + "/log.txt?level=loud").is(http.StatusUnprocessableEntity).clean().says("no such level")
	s.get(at + "/skips.csv?phase=x").is(http.StatusUnprocessableEntity).clean()
	s.get(at + "/skips.jsonl?phase=x").is(http.StatusUnprocessableEntity).clean()
	s.get(at + "/definition.txt?file=none").is(http.StatusNotFound).clean().says("load.yaml")
}

func (s *scene) file(path string) answer {
	s.t.Helper()
	got := s.get(path).is(http.StatusOK)
	require.Regexp(s.t, `^attachment; filename="[\w.-]+"$`, got.header.Get("Content-Disposition"))
	require.Equal(s.t, "nosniff", got.header.Get("X-Content-Type-Options"))
	require.Equal(s.t, "no-store", got.header.Get("Cache-Control"))
	return got
}
