package job

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// CurrentOwner identifies this process by host, boot, pid and start time (a pid
// is used again), and a nonce, so that two launchers are two owners.
func CurrentOwner() (core.Owner, error) {
	host, err := os.Hostname()
	if err != nil {
		return core.Owner{}, fmt.Errorf("name this process as an owner: %w", err)
	}
	host = strings.ReplaceAll(host, "/", "_")
	pid := os.Getpid()
	self, _ := readProcess(pid) // without /proc the start time is unknown
	return core.Owner{Host: host, Boot: bootID(), PID: pid, Start: self.start, Nonce: rand.Text()[:8]}, nil
}

// DeadOwner reports whether the owner belonged to this boot of this host, and
// no living process has its pid and start time. Any other is never known to be
// dead, since host names are not unique: its lease decides (rule L2).
func DeadOwner(o core.Owner) bool {
	here, err := CurrentOwner()
	if err != nil || o.Host != here.Host || o.Boot == "" || o.Boot != here.Boot || o.PID <= 0 {
		return false
	}
	p, ok := readProcess(o.PID)
	if !ok {
		return errors.Is(syscall.Kill(o.PID, 0), syscall.ESRCH)
	}
	return p.zombie || (o.Start != "" && p.start != o.Start)
}

// bootID includes the pid namespace, which distinguishes containers. If empty,
// no owner is known to be dead.
func bootID() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + "+" + strings.Trim(strings.TrimPrefix(namespace, "pid:"), "[]")
}

type process struct {
	start  string // field 22 of stat, in clock ticks since boot
	zombie bool   // it has ended, and its parent has not asked for its exit code
}

func readProcess(pid int) (process, bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	// The program's name in parentheses may hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const state, start = 0, 19 // fields 3 and 22, counted from the third
	if len(fields) <= start {
		return process{}, false
	}
	return process{start: fields[start], zombie: fields[state] == "Z" || fields[state] == "X"}, true
}
