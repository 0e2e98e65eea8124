package access

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// SessionTime is how long a session lasts (rule AP7).
const SessionTime = 12 * time.Hour

const cookieName = "surfin_session"

// sessions knows sessions by their cookie alone: NAME.END.SIGNATURE. The key is
// derived from the client's token, so every server with that token knows the
// session, and another token ends it.
type sessions struct{ clients []sessionClient }

type sessionClient struct {
	Caller
	key []byte
}

func newSessions(clients []settings.Client) *sessions {
	s := &sessions{}
	for _, c := range clients {
		s.add(Caller{Name: c.Name, Role: c.Role}, []byte(c.Token))
	}
	return s
}

func (s *sessions) add(c Caller, secret []byte) {
	s.clients = append(s.clients, sessionClient{c, signed(secret, "surfin session 1 "+c.Name)})
}

func signed(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// value returns a cookie's value, or "" for an unknown client.
func (s *sessions) value(c Caller, end time.Time) string {
	for _, known := range s.clients {
		if known.Name == c.Name && known.Role == c.Role {
			text := c.Name + "." + strconv.FormatInt(end.Unix(), 10)
			return text + "." + base64.RawURLEncoding.EncodeToString(signed(known.key, text))
		}
	}
	return ""
}

// find returns the client of a session that has not ended.
func (s *sessions) find(r *http.Request, now time.Time) (Caller, bool) {
	for _, cookie := range r.CookiesNamed(cookieName) {
		if c, is := s.read(cookie.Value, now); is {
			return c, true
		}
	}
	return Caller{}, false
}

func (s *sessions) read(value string, now time.Time) (Caller, bool) {
	at := strings.LastIndexByte(value, '.')
	if at < 0 {
		return Caller{}, false
	}
	text := value[:at]
	signature, err := base64.RawURLEncoding.Strict().DecodeString(value[at+1:])
	name, last, _ := strings.Cut(text, ".")
	end, wrong := strconv.ParseInt(last, 10, 64)
	if err != nil || wrong != nil || end <= now.Unix() || end > now.Add(SessionTime+time.Minute).Unix() {
		return Caller{}, false
	}
	for _, c := range s.clients {
		if c.Name == name && hmac.Equal(signature, signed(c.key, text)) {
			c.Until = time.Unix(end, 0)
			return c.Caller, true
		}
	}
	return Caller{}, false
}

// hasSession reports whether the browser has a session, which may be over.
func hasSession(r *http.Request) bool { return len(r.CookiesNamed(cookieName)) > 0 }

// sessionCookie has an empty value to end the session.
func sessionCookie(r *http.Request, base, value string) *http.Cookie {
	c := &http.Cookie{
		Name: cookieName, Value: value, Path: base + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https"), MaxAge: int(SessionTime / time.Second),
	}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}
