package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

const linkTime = 10 * time.Minute

// linkClient is the name of the session that a link begins.
const linkClient = "link"

// link has the code of a server without tokens, which can be used once.
type link struct {
	mu   sync.Mutex
	code [sha256.Size]byte
	end  time.Time // zero if there is none
}

// NewLink returns the path and query of a link that makes an operator's session
// in a browser, once, for ten minutes, by this process. It is "" unless the
// server has neither tokens nor a proxy. An earlier link ends.
func (g *Guard) NewLink() string {
	if !g.door.open() {
		return ""
	}
	code := secretText()
	g.link.mu.Lock()
	defer g.link.mu.Unlock()
	g.link.code, g.link.end = sha256.Sum256([]byte(code)), g.config.Now().Add(linkTime)
	return g.config.Base + "/login?code=" + code
}

// use reports whether the code is valid, which it is not again.
func (l *link) use(code string, now time.Time) bool {
	sum := sha256.Sum256([]byte(code))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end.IsZero() || !now.Before(l.end) || subtle.ConstantTimeCompare(sum[:], l.code[:]) != 1 {
		return false
	}
	l.end = time.Time{}
	return true
}

func linkCaller() Caller { return Caller{Name: linkClient, Role: settings.Operator} }

func secretText() string {
	var b [24]byte
	_, _ = rand.Read(b[:]) //nolint:errcheck // it never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}
