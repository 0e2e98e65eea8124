package core_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Rule F4.
func TestTheHashOfADefinitionIsOverAllFiles(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte("job: x\n"))
	require.Equal(t, hex.EncodeToString(sum[:]), ports.NewDefinition("job: x\n", "/x.yaml", nil).Hash, "of one file: that of its text")

	a, b := core.DefinitionFile{Name: "a.yaml", Text: "a"}, core.DefinitionFile{Name: "b.yaml", Text: "b", Path: "/b.yaml"}
	d := ports.NewDefinition("x", "/x.yaml", []core.DefinitionFile{b, a})
	require.Equal(t, []core.DefinitionFile{a, b}, d.Files)
	require.Equal(t, d.Hash, ports.NewDefinition("x", "", []core.DefinitionFile{a, {Name: "b.yaml", Text: "b"}}).Hash, "neither order nor paths count")
	hashes := map[string]bool{d.Hash: true}
	for _, files := range [][]core.DefinitionFile{
		nil, {a}, {b}, {{Name: "a.yaml", Text: "b"}, {Name: "b.yaml", Text: "a"}}, {a, {Name: "c.yaml", Text: "b"}}, {{Name: "a.yam", Text: "la"}, b},
	} {
		hash := ports.NewDefinition("x", "", files).Hash
		require.False(t, hashes[hash], files)
		hashes[hash] = true
	}
}
