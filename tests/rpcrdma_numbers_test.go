package tests

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rpcTable has a row for each requirement of RPC-over-RDMA, with its level: the third cell.
const rpcTable = "docs/rpcrdma-requirements.md"

var (
	rpcRow   = regexp.MustCompile(`(?m)^\| (RPC[12]-\d{3}|RPCN-\d{2}|ONC-\d{3}|NFSB-\d{2}) \| (?:[^|]+ )?\| ([MSO-]) \| [^|]+ \|$`)
	rpcCited = regexp.MustCompile(`\b(RPC[12]|ONC)-\d{3}\b((?:,? (?:and |to |// )*\d{3}\b|,\s+// (?:and |to )?\d{3}\b)*)`)
	rpcEach  = regexp.MustCompile(`\b(?:RPCN|NFSB)-\d{2}\b`)
	// rpcTest is a test with its comment. Those that call rpcOverAll run over all transports.
	rpcTest    = regexp.MustCompile(`(?ms)^((?:// [^\n]*\n)+)func Test\w+\(t \*testing\.T\) \{\n(.*?)^\}\n`)
	rpcOverAll = regexp.MustCompile(`\b(?:overAll|inBothDirections)\(t, `)
)

// rpcNumbers returns the numbers that a text cites.
func rpcNumbers(text string) []string {
	if !containsAny(text, "RPC1-", "RPC2-", "RPCN-", "ONC-", "NFSB-") {
		return nil
	}
	return append(citedBy(rpcCited, text), rpcEach.FindAllString(text, -1)...)
}

// TestRequirementsOfRPC checks that every number that is cited has a row, and every row of level M a test that names it. What is asked of ONC RPC
// and of NFS holds whatever carries it, and so a test that names it runs over all transports.
func TestRequirementsOfRPC(t *testing.T) {
	texts := readTexts(t)
	levels := make(map[string]string)
	for _, row := range rpcRow.FindAllStringSubmatch(texts[rpcTable], -1) {
		if levels[row[1]] != "" {
			t.Errorf("%s has %s twice", rpcTable, row[1])
		}
		levels[row[1]] = row[2]
	}
	want := 0
	for _, group := range []string{"RPC", "ONC", "NFSB"} {
		want += strings.Count(texts[rpcTable], "\n| "+group)
	}
	if len(levels) != want || want < 170 {
		t.Errorf("%d of %d rows of %s are read", len(levels), want, rpcTable)
	}
	tested, overAll := make(map[string]bool), make(map[string]bool)
	for path, text := range texts {
		if path == rpcTable || path == "tests/rpcrdma_numbers_test.go" {
			continue
		}
		numbers := rpcNumbers(text)
		for _, number := range numbers {
			if levels[number] == "" {
				t.Errorf("%s cites %s, which %s does not have", path, number, rpcTable)
			}
		}
		if !strings.HasSuffix(path, "_test.go") || len(numbers) == 0 {
			continue
		}
		for _, number := range numbers {
			tested[number] = true
		}
		for _, test := range rpcTest.FindAllStringSubmatch(text, -1) {
			for _, number := range rpcNumbers(test[1]) {
				overAll[number] = overAll[number] || rpcOverAll.MatchString(test[2])
			}
		}
	}
	for _, number := range slices.Sorted(maps.Keys(levels)) {
		switch {
		case levels[number] != "M":
		case !tested[number]:
			t.Errorf("no test names %s", number)
		case !strings.HasPrefix(number, "RPC") && !overAll[number]:
			t.Errorf("no test that runs over all transports names %s", number)
		}
	}
}

// TestCitationsOfRPCAreRead checks how citations of several numbers are read.
func TestCitationsOfRPCAreRead(t *testing.T) {
	for text, want := range map[string]string{
		"(RPC2-045, 047, 048; RPC1-032)": "RPC2-045 RPC2-047 RPC2-048 RPC1-032", "RPC2-030 to 032 and 035": "RPC2-030 RPC2-030 RPC2-031 RPC2-032 RPC2-035",
		"RPC2-080, 1024 octets": "RPC2-080", "ONC-003, 004": "ONC-003 ONC-004",
	} {
		if got := strings.Join(citedBy(rpcCited, text), " "); got != want {
			t.Errorf("%q cites %s, want %s", text, got, want)
		}
	}
}
