package settings

import (
	"fmt"
	"strings"
)

// Wanted reports whether metrics are offered.
func (m Metrics) Wanted() bool { return m.Listen != "" || m.Textfile != "" }

// Wanted reports whether traces are sent, by endpoint or OTEL_ variables. A protocol other than http/protobuf
// is an error.
func (t Traces) Wanted(getenv func(string) string) (bool, error) {
	first := func(names ...string) string {
		for _, n := range names {
			if v := getenv(n); v != "" {
				return v
			}
		}
		return ""
	}
	exporter := getenv("OTEL_TRACES_EXPORTER")
	switch {
	case strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true"), exporter == "none":
		return false, nil
	case exporter != "" && exporter != "otlp":
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER: %q is not known (known: otlp, none)", exporter)
	case t.Endpoint == "" && exporter == "" && first("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT") == "":
		return false, nil
	}
	if p := first("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); p != "" && p != "http/protobuf" {
		return false, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL: %q is not known (known: http/protobuf)", p)
	}
	return true, nil
}
