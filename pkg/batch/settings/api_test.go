package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheClientsOfTheAPI(t *testing.T) {
	t.Parallel()
	dir := write(t, "api:\n  listen: localhost:9000\n  operator_tokens: {ci: 0123456789abcdef}\n  viewer_tokens:\n    wall: fedcba9876543210==\n")
	s, err := Load(Source{Dir: dir, Environ: []string{"SURFIN_API_OPERATOR_TOKENS_ANNA=anna-0123456789abcdef", "SURFIN_API_RATE=7"}})
	require.NoError(t, err)
	require.Empty(t, s.Warnings)
	require.Equal(t, API{Listen: "localhost:9000", Rate: 7, Clients: []Client{
		{"anna", Operator, "anna-0123456789abcdef"}, {"ci", Operator, "0123456789abcdef"}, {"wall", Viewer, "fedcba9876543210=="},
	}}, s.API)
	s, err = Load(Source{Dir: t.TempDir()})
	require.NoError(t, err)
	require.Equal(t, API{Listen: "127.0.0.1:8321", Rate: 50}, s.API)
}

func TestAProxyThatSignsUsersIn(t *testing.T) {
	t.Parallel()
	dir := write(t, "api:\n  base_path: /surfin/\n  proxy: {from: '127.0.0.1, 10.1.2.3/16', user_header: x-forwarded-user, groups_header: remote-groups, operators: 'anna,@ops', viewers: '*'}\n")
	s, err := Load(Source{Dir: dir, Environ: []string{"SURFIN_API_PROXY_VIEWERS=@all, bob"}})
	require.NoError(t, err)
	require.Equal(t, "/surfin", s.API.BasePath)
	require.Equal(t, "[127.0.0.1/32 10.1.0.0/16] X-Forwarded-User Remote-Groups [anna @ops] [@all bob]",
		fmt.Sprint(s.API.Proxy.From, " ", s.API.Proxy.UserHeader, " ", s.API.Proxy.GroupsHeader, " ", s.API.Proxy.Operators, " ", s.API.Proxy.Viewers))
}

func TestWrongSettingsOfTheAPIAreRefusedWithoutATokenInTheMessage(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"api: {operator_tokens: {ci: hunter2}}":                                                        "a token has at least 16 characters",
		"api: {operator_tokens: {ci: 'hunter2 hunter2 hunter2'}}":                                      "a token has at least 16 characters",
		"api: {operator_tokens: {c.i: hunter2hunter2hu}}":                                              `"c.i" is not a valid client name`,
		"api:\n  operator_tokens:\n    a: hunter2hunter2hu\n  viewer_tokens:\n    b: hunter2hunter2hu": "each client needs its own",
		"api:\n  operator_tokens:\n    a: hunter2hunter2hu\n  viewer_tokens:\n    a: hunter3hunter2hu": "has a token in another role already",
		"api:\n  operator_tokens:\n    a: hunter2hunter2hu\n    a: hunter3hunter2hu":                   "a",
		"api:\n  operator_tokens: {a: hunter2hunter2hu,\nb: [hunter3hunter2hu]}":                       "",
		"api:\n  operator_tokens:\n    a: {b: hunter2hunter2hu}":                                       "a single value is expected here",
		"api:\n  operator_tokens:\n  - hunter2hunter2hu":                                               "keys and values are expected here",
		"api:\n  operator_tokens: hunter2hunter2hu":                                                    "keys and values are expected here",
		"api:\n  operator_tokens:\n    a: \"hunter2hunter2hu\n":                                        "",
		"api: {listen: nowhere}":                                                                       "is not HOST:PORT",
		"api: {listen: ''}":                                                                            "HOST:PORT is needed",
		"api: {rate: 0}":                                                                               "is not a number of requests",
		"api: {proxy: {from: proxy.example.org}}":                                                      "is not an address or a network",
		"api: {proxy: {from: 127.0.0.1}}":                                                              "set api.proxy.user_header",
		"api: {proxy: {user_header: cookie}}":                                                          "cannot be the name of such a header",
		"api: {proxy: {user_header: 'a b'}}":                                                           "cannot be the name of such a header",
		"api: {proxy: {operators: '@'}}":                                                               "has no name of a group",
		"api: {proxy: {admins: anna}}":                                                                 "unknown key api.proxy.admins (allowed: from, user_header, groups_header, operators, viewers)",
		"api: {proxy: 127.0.0.1}":                                                                      "keys and values are expected here",
		"api: {base_path: surfin}":                                                                     "is not a path such as /surfin",
		"api: {base_path: /a/../b}":                                                                    "is not a path such as /surfin",
		"api: {tokens: {}}":                                                                            "unknown key api.tokens (allowed: base_path, listen, operator_tokens, paths, proxy, rate, viewer_tokens)",
	} {
		_, err := Load(Source{Dir: write(t, text)})
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "hunter", text)
	}
	_, err := Load(Source{Dir: t.TempDir(), Environ: []string{"SURFIN_API_VIEWER_TOKENS_WALL=hunter2"}})
	require.ErrorContains(t, err, "SURFIN_API_VIEWER_TOKENS_WALL")
	require.NotContains(t, err.Error(), "hunter")
}

func TestASettingsFileWithSecretsThatEveryUserReadsIsWarnedOf(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("permissions say nothing there")
	}
	for text, keys := range map[string]string{
		"api:\n  operator_tokens: {ci: 0123456789abcdef}\n":                                         "api.operator_tokens.ci",
		"databases: {default: 'postgres://u:hunter2@h/d'}\n":                                        "databases.default.url",
		"databases: {default: 'postgres://u@h/d'}\nlog: {format: json}\n":                           "",
		"databases: {default: 'sqlite:a.db'}\n":                                                     "",
		"databases: {b: 'postgres://u:hunter2@h/d'}\napi: {viewer_tokens: {w: 0123456789abcdef}}\n": "api.viewer_tokens.w, databases.b.url",
	} {
		dir := write(t, text)
		path := filepath.Join(dir, FileName)
		for mode, warned := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: true, 0o604: true} {
			require.NoError(t, os.Chmod(path, mode))
			s, err := Load(Source{Dir: dir})
			require.NoError(t, err)
			if keys == "" || !warned {
				require.Empty(t, s.Warnings, "%s %o", text, mode)
				continue
			}
			require.Len(t, s.Warnings, 1)
			require.Contains(t, s.Warnings[0], fmt.Sprintf("%s has secrets (%s) and every user of this machine may read it (mode %04o): chmod 600 ", path, keys, mode))
			require.NotContains(t, s.Warnings[0], "hunter2")
		}
	}
}

func TestADatabaseURLWithASecretNamesTheCure(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"postgres://u:${secret.pg}@h/d", "${secret.url}", "sqlite:${env.FILE}"} {
		_, err := Load(Source{Dir: write(t, "databases: {default: '"+url+"'}\n")})
		require.ErrorContains(t, err, ":1:22: databases.default.url: a database URL takes no ${...}", url)
		require.ErrorContains(t, err, "SURFIN_DATABASES_NAME", url)
	}
}
