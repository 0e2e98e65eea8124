package secret_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/secret"
)

func TestPasswordsInMessagesAreMasked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"open postgres://me:se%cret@host/db: no":                   "open postgres://me:***@host/db: no",
		"postgres://me:a/b@c:d@host:5432/db?x=1":                   "postgres://me:***@host:5432/db?x=1",
		"postgres://host/db?password=se.cret&sslmode=x":            "postgres://host/db?password=***&sslmode=x",
		"cannot parse `user=me password=secret host=x`":            "cannot parse `user=me password=*** host=x`",
		"http://localhost:4318/v1":                                 "http://localhost:4318/v1",
		"postgres://me@host/db":                                    "postgres://me@host/db",
		`{"url":"http://u:p@h/","to":"x@y"}`:                       `{"url":"http://u:***@h/","to":"x@y"}`,
		"a text with an @ and : and = in it, and unexpected token": "a text with an @ and : and = in it, and unexpected token",
	} {
		require.Equal(t, want, secret.Text(text))
	}
}

func TestALineOfSettingsIsMaskedWhereverASecretMayBe(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"  default: postgres://me:se%cret@host/db":         "  default: postgres://me:***@host/db",
		`  default: "postgres://me:a b'c@host/db"`:         `  default: "postgres://me:***@host/db"`,
		"  default: postgres://me:secret":                  "  default: postgres://me:***",
		"  default: {url: postgres://h/x, password: pa ss": "  default: {url: postgres://h/x, password: ***",
		"  db_token = abc":                                 "  db_token = ***",
		"  endpoint: http://localhost:4318":                "  endpoint: http://localhost:4318",
		"  {url: sqlite:x, passwrd: abc, max: 1}":          "  {url: sqlite:x, passwrd: ***",
		"  level: loud":                                    "  level: loud",
	} {
		require.Equal(t, want, secret.Line(line))
	}
}
