package secret_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/secret"
)

// Rule SE4.
func TestWhatTheProcessKnowsIsMaskedFromTheStart(t *testing.T) {
	t.Parallel()
	v := secret.NewVault([]string{"SURFIN_SECRET_HOOK=hook-value\n", "https_proxy=http://me:proxy%40pass1@proxy:3128", "PGPASSWORD=pg-password", "HOME=/root"}, "", nil)
	v.LearnURL("database default", "postgres://me:dat%26abase1@db/orders?sslpassword=key-phrase")
	v.Learn("the token of client ci", "token-0123456789")
	for text, want := range map[string]string{
		"a hook-value": "a ***", "proxy@pass1 or proxy%40pass1": "*** or ***", "pg-password": "***", "dat&abase1": "***",
		"key-phrase": "***", "token-0123456789": "***", "token-0123…": "***…", "…456789 x": "…*** x", "/root": "/root",
	} {
		require.Equal(t, want, v.Values(text))
	}
	require.Empty(t, v.Unmasked())
	require.Equal(t, []string{"PATH=/bin", "LANG=C"}, v.Environ([]string{
		"PATH=/bin", "SURFIN_LEASE=1s", "DATABASE_URL=x", "LANG=C", "PGPASSWORD=pg-password", "OTHER=x token-0123456789",
	}))
}

func TestAShortSecretOrOneThatIsAUserIsWarnedOfAndNotMasked(t *testing.T) {
	t.Parallel()
	v := secret.NewVault(nil, "", nil)
	v.LearnURL("database default", "postgres://postgres:postgres@db/orders")
	v.LearnURL("database other", "postgres://me:warehouse@db/warehouse")
	v.LearnURL("database third", "postgres://me:short@db/x")
	require.Equal(t, "postgres warehouse short", v.Values("postgres warehouse short"))
	require.Len(t, v.Unmasked(), 3)
	for _, text := range v.Unmasked() {
		require.NotContains(t, text, "short ")
	}
}

func TestANumberIsMaskedInTextsOfJSONOnly(t *testing.T) {
	t.Parallel()
	v := secret.NewVault(nil, "", nil)
	v.Learn("a password", "1234567890")
	const document = `{"offset": 1234567890, "error": "it is 1234567890, \"1234567890\""}`
	require.JSONEq(t, `{"offset": 1234567890, "error": "it is ***, \"***\""}`, v.Values(document))
	require.JSONEq(t, v.Values(document), string(v.JSON([]byte(document))))
	require.Equal(t, "it is ***", v.Values("it is 1234567890"))
}
