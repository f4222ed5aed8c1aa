package wireshark_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// requireTshark skips the test where tshark is missing. On CI (environment
// variable CI) it fails, so that these tests cannot disappear unnoticed.
func requireTshark(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("tshark"); err == nil {
		return
	}
	const how = "tshark is not on the path; on Debian and Ubuntu: apt-get install --no-install-recommends tshark"
	if ci, _ := strconv.ParseBool(os.Getenv("CI")); ci {
		t.Fatal(how)
	}
	t.Skip(how)
}

// tshark runs the script over a capture file, with preferences and plugins of
// nobody, and returns what it prints. Any error of Lua's fails the test.
func tshark(t testing.TB, file string, args ...string) string {
	t.Helper()
	out := runTshark(t, t.TempDir(), file, append([]string{"-X", "lua_script:dgrdma.lua"}, args...)...)
	if at := strings.Index(out, "Lua Error"); at >= 0 {
		t.Fatalf("%s: %s", file, out[at:min(len(out), at+300)])
	}
	return out
}

func runTshark(t testing.TB, home, file string, args ...string) string {
	t.Helper()
	cmd := exec.Command("tshark", append([]string{"-n", "-r", file}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "WIRESHARK_CONFIG_DIR="+home, "LC_ALL=C.UTF-8", "TZ=UTC")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil || strings.Contains(stderr.String(), "Lua") {
		t.Fatalf("tshark %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String()
}

// row is a packet as tshark prints it, by field.
type row map[string]string

// list returns the values of a field that may be there several times.
func (r row) list(field string) []string {
	if r[field] == "" {
		return nil
	}
	return strings.Split(r[field], ",")
}

// numbers returns the values of a numeric field.
func (r row) numbers(t testing.TB, field string) (all []int) {
	t.Helper()
	for _, s := range r.list(field) {
		n, err := strconv.ParseUint(s, 0, 64)
		if err != nil {
			t.Fatalf("%s is %q", field, r[field])
		}
		all = append(all, int(n))
	}
	return all
}

// number returns the value of a field that may be there once; 0: it is not.
func (r row) number(t testing.TB, field string) int {
	t.Helper()
	switch all := r.numbers(t, field); len(all) {
	case 0:
		return 0
	case 1:
		return all[0]
	}
	t.Fatalf("%s is %q", field, r[field])
	return 0
}

// rows returns the packets that are frames, by their number in the file.
func rows(t testing.TB, file string, fields []string, args ...string) map[int]row {
	t.Helper()
	args = append(args, "-Y", "dgrdma", "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=,", "-E", "separator=/t", "-e", "frame.number")
	fields = append(fields, "_ws.lua.error")
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	all := table(t, tshark(t, file, args...), fields)
	for number, r := range all {
		if r["_ws.lua.error"] != "" {
			t.Fatalf("packet %d of %s: an error in Lua", number, file)
		}
	}
	return all
}

// table reads lines of fields, of which the first is the packet's number in the file.
func table(t testing.TB, out string, fields []string) map[int]row {
	t.Helper()
	all := make(map[int]row)
	for line := range strings.Lines(out) {
		values := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		number, err := strconv.Atoi(values[0])
		if err != nil || len(values) != len(fields)+1 {
			t.Fatalf("tshark printed %q", line)
		}
		r := make(row)
		for i, f := range fields {
			r[f] = values[i+1]
		}
		all[number] = r
	}
	return all
}

// save writes a capture for tshark to read.
func save(t testing.TB, capture []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trace.pcap")
	if err := os.WriteFile(file, capture, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// The other tests would not see errors in Lua if they looked elsewhere.
func TestErrorsAreSeen(t *testing.T) {
	requireTshark(t)
	script := filepath.Join(t.TempDir(), "broken.lua")
	const broken = `local p = Proto("broken", "Broken")
function p.dissector() error("as it should") end
DissectorTable.get("ethertype"):add(0xf042, p)`
	if err := os.WriteFile(script, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(vectors, "ether-single.pcap")
	if out := runTshark(t, t.TempDir(), file, "-X", "lua_script:"+script, "-V"); !strings.Contains(out, "Lua Error") {
		t.Error("a broken script goes unnoticed in the tree")
	}
	out := runTshark(t, t.TempDir(), file, "-X", "lua_script:"+script, "-T", "fields", "-e", "_ws.lua.error")
	if strings.TrimSpace(out) == "" {
		t.Error("a broken script goes unnoticed among the fields")
	}
}
