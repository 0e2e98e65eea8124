package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/console"
	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestAnUnchangedPageIsNotSentAgain(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		var looks, seconds atomic.Int64 // the footer has another second each time
		s := newScene(t, url, func(c *console.Config) {
			c.Looks = func() int64 { return looks.Add(1) }
			c.Now = func() time.Time { return time.Now().Add(time.Duration(seconds.Add(1)) * time.Second) }
		})
		path := "/executions/" + text(s.run("load", nil))
		page := s.get(path).is(http.StatusOK).clean()
		tag := regexp.MustCompile(`data-tag="([^"]+)"`).FindStringSubmatch(page.text)
		require.NotNil(t, tag, page.text)
		known := strings.NewReplacer("&#34;", `"`, "&quot;", `"`).Replace(tag[1])
		same := s.get(path, "HX-Request", "true", "If-None-Match", known).is(http.StatusNotModified)
		require.Empty(t, same.text)
		require.Equal(t, "no-store", same.header.Get("Cache-Control"))
		require.Equal(t, known, same.header.Get("ETag"))
		require.Regexp(t, `^20\d\d-\S+Z 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d$`, same.header.Get("Surfin-As-Of"))
		whole := page.header.Get("ETag")
		require.NotEqual(t, known, whole)
		s.get(path, "If-None-Match", `"x", `+whole).is(http.StatusNotModified)
		s.get(path, "HX-Request", "true", "If-None-Match", whole).is(http.StatusOK)
		s.get(path+"?tz=Asia/Tokyo", "If-None-Match", whole).is(http.StatusOK)
		s.get(path+"?tz=Asia/Tokyo", "HX-Request", "true", "If-None-Match", known).is(http.StatusOK)
		s.call(viewerToken, http.MethodGet, path, "If-None-Match", whole).is(http.StatusOK).says("read only, as wall")
		s.call("forged", http.MethodGet, path, "HX-Request", "true", "If-None-Match", known).is(http.StatusUnauthorized)

		list := s.get("/executions", "HX-Request", "true").is(http.StatusOK)
		s.run("fails", nil)
		changed := s.get("/executions", "HX-Request", "true", "If-None-Match", list.header.Get("ETag")).is(http.StatusOK).says("fails")
		require.True(t, strings.HasPrefix(changed.text, "<main"))
	})
}

// A role shares nothing with another one that it may not see.
func TestFragmentsAreSharedWithinARoleOnly(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t))
	for range 2 {
		s.get("/audit", "HX-Request", "true").is(http.StatusOK)
		s.call(viewerToken, http.MethodGet, "/audit", "HX-Request", "true").is(http.StatusForbidden)
	}
}
