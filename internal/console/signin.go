package console

import (
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/surfin-batch/surfin/internal/access"
)

type signInView struct {
	access.SignIn
	// Again is when to try again, in seconds; 0 means at once.
	Again int
	Hours int
}

// signIn renders the page for signing in. It has no script, and no links to pages that it guards.
func (c *console) signIn(w http.ResponseWriter, r *http.Request, s access.SignIn) {
	r = r.Clone(r.Context())
	r.URL = &url.URL{Path: r.URL.Path} // its query may have the code of a link
	v := &visit{console: c, r: r, w: w, caller: s.Caller}
	v.choose()
	view := signInView{SignIn: s, Again: int(math.Ceil(s.RetryAfter.Seconds())), Hours: int(access.SessionTime / time.Hour)}
	heading := "Sign in"
	switch {
	case s.Caller.Name != "":
		heading = "Signed in as " + clip(s.Caller.Name, shortText)
	case s.Open:
		heading = "This server has no tokens"
	case s.Over:
		heading = "The session is over: sign in again"
	}
	title := heading
	if s.Wrong != "" {
		title = heading + ": " + clip(s.Wrong, shortText)
	}
	if view.Again > 0 {
		view.Wrong += "."
	}
	v.send(v.render(&page{Title: title, Heading: heading, Status: s.Status, Body: view}, "signin"), "")
}
