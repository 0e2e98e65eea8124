//test:plain

package nearest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/nearest"
)

func TestAMisspeltNameIsFoundAndAForeignOneIsNot(t *testing.T) {
	t.Parallel()
	names := []string{"id", "email", "customer"}
	require.Equal(t, "email", nearest.Name("emial", names))
	require.Equal(t, "customer", nearest.Name("Custommer", names))
	require.Equal(t, "Cost Total $", nearest.Name("cost_total", []string{"Cost", "Cost Total $"}))
	require.Empty(t, nearest.Name("weather", names))
	require.Equal(t, " (did you mean id?)", nearest.Hint("di", names))
	require.Equal(t, " (there is id, email, customer)", nearest.Hint("weather", names))
	require.Empty(t, nearest.Hint("weather", nil))
}
