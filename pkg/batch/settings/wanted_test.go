package settings_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

func TestWhenTracesAreWanted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		endpoint, environment string
		want                  bool
		wrong                 string
	}{
		{"", "", false, ""},
		{"http://h", "", true, ""},
		{"", "OTEL_EXPORTER_OTLP_ENDPOINT=http://h", true, ""},
		{"", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://h OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", true, ""},
		{"", "OTEL_TRACES_EXPORTER=otlp", true, ""},
		{"http://h", "OTEL_TRACES_EXPORTER=none", false, ""},
		{"http://h", "OTEL_SDK_DISABLED=true", false, ""},
		{"http://h", "OTEL_TRACES_EXPORTER=zipkin", false, `"zipkin" is not known (known: otlp, none)`},
		{"http://h", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", false, `"grpc" is not known (known: http/protobuf)`},
		{"", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", false, ""},
	} {
		got, err := settings.Traces{Endpoint: c.endpoint}.Wanted(func(name string) string {
			for _, v := range strings.Fields(c.environment) {
				if value, ok := strings.CutPrefix(v, name+"="); ok {
					return value
				}
			}
			return ""
		})
		require.Equal(t, c.want, got, "%+v", c)
		if c.wrong != "" {
			require.ErrorContains(t, err, c.wrong)
			continue
		}
		require.NoError(t, err)
	}
}
