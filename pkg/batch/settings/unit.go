package settings

import (
	"strconv"
	"strings"
	"time"
)

// Unit returns the unit or form of a Reference row; "" is a mistake, which a test finds.
func Unit(row [4]string) string {
	switch key, fallback := row[0], row[2]; {
	case strings.HasSuffix(key, ".max_open"):
		return "connections"
	case key == "traces.chunks":
		return "spans"
	case key == "api.rate":
		return "requests a second"
	case key == "files.mode":
		return "permissions, octal"
	case strings.HasSuffix(key, ".listen") && fallback != "true":
		return "HOST:PORT"
	case strings.HasPrefix(key, "databases."), key == "traces.endpoint":
		return "URL"
	case key == "api.paths":
		return "paths"
	case key == "log.events", key == "tasks.logs", key == "metrics.textfile", strings.HasSuffix(key, ".file"):
		return "path"
	case key == "tasks.secrets", strings.HasSuffix(key, ".command"):
		return "list"
	case fallback == "true", fallback == "false":
		return "true or false"
	default:
		if _, err := strconv.ParseFloat(fallback, 64); err == nil {
			return ""
		}
		if _, err := time.ParseDuration(fallback); err == nil {
			return "duration, such as 90s or 5m"
		}
		return "text"
	}
}
