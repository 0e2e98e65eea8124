package console_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/internal/assembly"
	"github.com/surfin-batch/surfin/internal/console"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/operator/catalog"
	"github.com/surfin-batch/surfin/internal/picture"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

const formJob = `job: form
parameters:
  day: {type: date, default: 2026-11-22}
  input: {type: path, default: bad.csv, identifying: false}
  note: {type: string, default: plain, identifying: false}
  code: {type: string, pattern: "[a-z]+", default: a}
  size: {type: int, min: 1, max: 9, default: 3}
  kind: {type: string, enum: [new, old], default: new}
  quick: {type: bool, default: false}
  key: {type: string, secret: true}
schedule: {cron: "0 3 * * *"}
flow:
- {step: table, tasklet: {sql: create table if not exists form (id int)}}
- {step: load, chunk: {size: 2, skip: {limit: 3}, reader: {csv: {path: "${params.input}", item: {id: int}}}, writer: {table: form}}}
- {step: fails, tasklet: {fail: {message: no paper}}}
`

// forms is a scene with a subject for every form, and the path of each: those that are added tomorrow as well.
func forms(t testing.TB, address string, change ...func(*console.Config)) (s *scene, paths []string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "form.yaml")
	require.NoError(t, os.WriteFile(file, []byte(formJob), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bad.csv"), []byte("id\n1\n2\na\nb\n"), 0o600))
	registry, err := assembly.NewRegistry()
	require.NoError(t, err)
	jobs, err := catalog.New(registry, nil, file)
	require.NoError(t, err)
	s = newScene(t, address, append(change, func(c *console.Config) { c.Jobs = jobs })...)
	failed, err := s.app.Run(t.Context(), runRequest(file, nil))
	require.NoError(t, err)
	_, err = s.app.Register(t.Context(), operator.RegisterRequest{File: file})
	require.NoError(t, err)
	accepted, err := s.app.Tasks.Submit(t.Context(), task.Submission{Title: "one", Tasks: []task.Spec{{Type: "shell", Payload: raw(t, map[string]any{"command": "echo x"})}}})
	require.NoError(t, err)
	insertOddRows(t, s.database())
	subjects := map[string]string{
		"execution": id(failed.ID), "job": "form", "skip": "1", "task": text64(int64(accepted.Tasks[0])), "group": text64(int64(accepted.Group)), "event": "1", "name": "history_retention_days",
	}
	for _, pattern := range console.Forms() {
		paths = append(paths, regexp.MustCompile(`\{(\w+)\}`).ReplaceAllStringFunc(pattern, func(place string) string {
			subject := subjects[strings.Trim(place, "{}")]
			require.NotEmpty(t, subject, "%s: the scene needs a subject for %s", pattern, place)
			return subject
		}))
	}
	return s, paths
}

// Each payload is in fields that a person types into, of several forms, in several requests of the same POST: to check, and to act. Lists,
// boxes and hidden fields have them in a request of their own, which no browser sends.
func TestHostileTextsInFormsAreInertAndKept(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, address string) {
		s, paths := forms(t, address)
		all, seen := payloads(), map[string]bool{}
		for n, path := range paths {
			page := s.get(path).is(http.StatusOK).clean()
			fields := page.form()
			require.NotEmpty(t, fields, "%s has no form", path)
			var names []string
			for _, f := range fields {
				names = append(names, f.name)
			}
			kind := strings.Join(names, " ")
			for i := range all {
				if every := map[bool]int{true: 3, false: 5}[!seen[kind] && !isFew(address)]; (i+n)%every > 0 { // the next form has the others
					continue
				}
				values, odd, query := page.fieldsOf(), page.fieldsOf(), url.Values{}
				for k, f := range fields {
					payload := all[(i+k)%len(all)]
					if query.Set(f.name, payload[:min(len(payload), 500)]); f.typed() {
						values.Set(f.name, payload)
					} else {
						odd.Set(f.name, payload)
					}
				}
				if values.Has("epoch") {
					values.Set("epoch", "999999") // refused
				}
				s.keeps(path, with(values, "do", []string{"check", ""}[i%2]))
				if s.meetsForm(path, odd); i%3 == 0 {
					s.keeps(path, with(values, "do", []string{"", "check"}[i%2]))
					got := s.get(path + "?" + query.Encode())
					require.Less(t, got.status, http.StatusInternalServerError, got.path)
					requireHarmless(t, got, "", false)
				}
			}
			seen[kind] = true
		}
		require.NotContains(t, s.log.String(), "level=ERROR")
	})
}

// Rules AP7 to AP9, OP14 and OP19, for every form: what an operator would send acts for nobody else.
func TestNoFormActsForOthers(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, address string) {
		s, paths := forms(t, address)
		sent := map[string]url.Values{}
		for _, path := range paths {
			sent[path] = s.get(path).is(http.StatusOK).fieldsOf()
		}
		callers := s.callers(t)
		before := s.everything()
		s.refuses(callers, sent)
		s.at = s.door(t, access.Config{UserOf: func(r *http.Request) (string, settings.Role) {
			return r.Header.Get("User"), settings.Role(r.Header.Get("Role"))
		}})
		s.refuses([]caller{
			{"no user", nil, false}, {"a user without a role", []string{"User", "guest"}, false}, {"a role without a user", []string{"Role", "operator"}, false},
			{"a client of the server", []string{"Authorization", "Bearer " + operatorToken}, false}, {"an unknown role", []string{"User", "anna", "Role", "admin"}, false},
			{"a viewer of the application", []string{"User", "anna", "Role", "viewer"}, true}, {"another site", []string{"User", "anna", "Role", "operator", "Origin", "https://evil.example"}, true},
		}, sent)
		require.Equal(t, before, s.everything())
		done := 0
		for _, path := range paths {
			if s.post(path, sent[path].Encode(), "User", "anna", "Role", "operator").status == http.StatusSeeOther {
				done++
			}
		}
		require.Greater(t, 2*done, len(paths), "an operator acts")
		require.NotEqual(t, before, s.everything())
	})
}

// refuses sends the forms as others, in whatever way.
func (s *scene) refuses(callers []caller, sent map[string]url.Values) {
	s.t.Helper()
	for k, c := range callers {
		for path, values := range sent {
			s.meets(c, path, k)
			got := s.post(path, values.Encode(), c.headers...)
			require.Contains(s.t, []int{http.StatusUnauthorized, http.StatusForbidden}, got.status, "%s: %s", c.name, path)
			got.clean()
			for _, secret := range []string{"no paper", "bad.csv", "echo", "reason"} {
				require.NotContains(s.t, mainOf(got.text), secret, "%s: %s", c.name, path)
			}
		}
	}
}

const maxBody = 1 << 20

// keeps sends a form: a page that follows is the form, with everything that was typed.
func (s *scene) keeps(path string, values url.Values) {
	s.t.Helper()
	got := s.meetsForm(path, values)
	if got.status == http.StatusSeeOther || len(values.Encode()) > maxBody {
		return
	}
	fields := got.form()
	require.NotNil(s.t, fields, "%s: %v\n%.3000s", got.path, values, got.text)
	for _, f := range fields {
		if want := values.Get(f.name); f.typed() && values.Has(f.name) {
			require.True(s.t, isKept(want, f.value), "%s: %s is %.80q, and was %.80q", got.path, f.name, f.value, want)
		} else if f.kind == "password" {
			require.Empty(s.t, f.value, got.path)
		}
	}
}

// isKept compares a text with its field in the page that follows, where signs stand for control characters.
func isKept(want, got string) bool {
	return want == got || picture.Visible(want) != want && unquoted(picture.Visible(want)) == unquoted(picture.Visible(got))
}

// meetsForm sends a form, and checks that the answer leads to a page or is one.
func (s *scene) meetsForm(path string, values url.Values) answer {
	s.t.Helper()
	got := s.submit(path, values)
	require.Less(s.t, got.status, http.StatusInternalServerError, "%s: %.2000v\n%s", got.path, values, s.log)
	if got.status == http.StatusSeeOther {
		require.Regexp(s.t, `^(/[^/\\]|/$)`, got.header.Get("Location"), path)
		return got
	}
	requireHarmless(s.t, got, "", false)
	return got
}

// Forms that are sent as no browser would, one after another. The log of the test has the seed of a walk.
func TestARandomWalkOverFormsMeetsPagesOnly(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	testdb.Each(t, func(t *testing.T, address string) {
		s, paths := forms(t, address)
		r := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // a walk
		for range 150 {
			path := paths[r.IntN(len(paths))]
			page := s.get(path)
			values, fields := url.Values{}, page.form()
			if fields != nil {
				values = page.fieldsOf()
			}
			browser := true // sends each field once, as it is
			for range 1 + r.IntN(3) {
				browser = mistreat(r, values, fields) && browser
			}
			if browser && fields != nil {
				s.keeps(path, values)
			} else {
				s.meetsForm(path, values)
			}
		}
		require.NotContains(t, s.log.String(), "level=ERROR", "seed %d", seed)
	})
}

// mistreat changes a value, and reports whether a browser could do that.
func mistreat(r *rand.Rand, values url.Values, fields []formField) bool {
	odd := oddValues()
	value := odd[r.IntN(len(odd))]
	var f formField
	if len(fields) > 0 {
		f = fields[r.IntN(len(fields))]
	}
	switch r.IntN(8) {
	case 0:
		values.Del(f.name)
	case 1:
		values.Add(f.name, value)
	case 2:
		values.Set(value, value)
	case 3:
		values.Set("do", []string{"check", "replace", "", value}[r.IntN(4)])
	default:
		values.Set(f.name, value)
		return f.typed()
	}
	return false
}

// FuzzForm sends any body to any form.
func FuzzForm(f *testing.F) {
	s, paths := forms(f, testdb.SQLite(f))
	for i, path := range paths {
		page := s.get(path)
		f.Add(i, page.fieldsOf().Encode(), "")
		for k, value := range oddValues() {
			if fields := page.form(); (i+k)%7 == 0 {
				f.Add(i, with(page.fieldsOf(), fields[k%len(fields)].name, value, "do", []string{"", "check", "replace"}[k%3]).Encode(), "like="+url.QueryEscape(value))
			}
		}
	}
	f.Fuzz(func(t *testing.T, form int, body, query string) {
		r := httptest.NewRequest(http.MethodPost, "http://localhost/", strings.NewReader(body))
		r.URL = &url.URL{Path: paths[uint(form)%uint(len(paths))], RawQuery: query} //nolint:gosec // any number
		r.Header = http.Header{"Authorization": {"Bearer " + operatorToken}, "Content-Type": {"application/x-www-form-urlencoded"}}
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r.WithContext(context.WithoutCancel(t.Context())))
		got := answer{t, fmt.Sprintf("%q?%q", r.URL.Path, query), w.Code, w.Header(), w.Body.String()}
		require.Less(t, got.status, http.StatusInternalServerError, "%s\n%s", got.path, s.log)
		if got.status == http.StatusSeeOther {
			require.Regexp(t, `^(/[^/\\]|/$)`, got.header.Get("Location"))
			return
		}
		requireHarmless(t, got, "", false)
	})
}
