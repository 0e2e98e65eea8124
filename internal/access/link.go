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

// linkCode is the code of a server without tokens, which can be used once.
type linkCode struct {
	mu   sync.Mutex
	code [sha256.Size]byte
	end  time.Time // zero if there is none
}

func (l *linkCode) renew(now time.Time) (code string) {
	code = secretText()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.code, l.end = sha256.Sum256([]byte(code)), now.Add(linkTime)
	return code
}

// use reports whether the code is valid, and until when: it is not valid again.
func (l *linkCode) use(code string, now time.Time) (end time.Time, valid bool) {
	sum := sha256.Sum256([]byte(code))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end.IsZero() || !now.Before(l.end) || subtle.ConstantTimeCompare(sum[:], l.code[:]) != 1 {
		return time.Time{}, false
	}
	end, l.end = l.end, time.Time{}
	return end, true
}

// restore makes a used code valid again until the end of its time, unless there is a newer one.
func (l *linkCode) restore(code string, end time.Time) {
	sum := sha256.Sum256([]byte(code))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end.IsZero() && sum == l.code {
		l.end = end
	}
}

func linkCaller() Caller { return Caller{Name: linkClient, Role: settings.Operator} }

func secretText() string {
	var b [24]byte
	_, _ = rand.Read(b[:]) //nolint:errcheck // it never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}
