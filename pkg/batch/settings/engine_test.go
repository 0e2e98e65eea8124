package settings

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheEngineIsChosenWithItsOptions(t *testing.T) {
	t.Parallel()
	dir := write(t, "databases:\n  default: postgres://h/d\nengine: river\nriver: {schema: q_1, listen: false, poll: 250ms}\n")
	s, err := Load(Source{Dir: dir})
	require.NoError(t, err)
	require.Equal(t, Engine{Name: EngineRiver, Origin: filepath.Join(dir, FileName) + ":3:9"}, s.Engine)
	require.Equal(t, River{Schema: "q_1", Poll: 250 * time.Millisecond}, s.River)
	s, err = Load(Source{Dir: dir, Environ: []string{"SURFIN_ENGINE=local", "SURFIN_RIVER_LISTEN=true"}})
	require.NoError(t, err)
	require.Equal(t, Engine{Name: EngineLocal, Origin: "SURFIN_ENGINE"}, s.Engine)
	require.True(t, s.River.Listen)
}

func TestAnEngineThatCannotBeIsRefusedWithItsPlaceAndTheCure(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"engine: rover\n": ":1:9: engine: \"rover\" is not allowed (allowed: local, river)\n",
		"databases:\n  default: sqlite:history.db\nengine: river\n": ":3:9: engine: river needs PostgreSQL, and the database default of the history is sqlite ",
		"engine: {river: 1}\n":             ":1:9: engine: a single value is expected here\n",
		"river: {skema: a}\n":              ":1:9: unknown key river.skema (allowed: schema, listen, poll)\n",
		"river: {schema: \"a b\"}\n":       `:1:17: river.schema: "a b" is not the name of a schema: lower-case letters, digits and _, at most 40, with no digit first`,
		"river: {schema: 1a}\n":            `"1a" is not the name of a schema`,
		"river: {listen: sometimes}\n":     `:1:17: river.listen: "sometimes" is not allowed (allowed: true, false)`,
		"river: {poll: 0s}\n":              `:1:15: river.poll: "0s" is not a duration above zero`,
		"river:\n  schema: SURFIN_RIVER\n": `"SURFIN_RIVER" is not the name of a schema`,
	} {
		dir := write(t, text)
		_, err := Load(Source{Dir: dir})
		require.ErrorContains(t, err, want, text)
	}
	_, err := Load(Source{Dir: t.TempDir(), Environ: []string{"SURFIN_ENGINE=river", "DATABASE_URL=sqlite:a.db"}})
	require.ErrorContains(t, err, "SURFIN_ENGINE: engine: river needs PostgreSQL")
	require.ErrorContains(t, err, "(DATABASE_URL): give it a URL postgres://..., or take the engine local")
	_, err = Load(Source{Dir: t.TempDir(), Environ: []string{"SURFIN_ENGINE=river"}})
	require.NoError(t, err, "the application may lend a pool for the database")
}
