package main

import (
	"os"
	"strings"
	"testing"
)

func TestDecodeUsage(t *testing.T) {
	for args, want := range map[string]string{
		"":                                      "decode what?",
		"-i lo file":                            "give one of them",
		"--count -1 file":                       "--count -1",
		"--port 0 file":                         `"0" is no port`,
		"--port sctp:7 file":                    `"sctp:7" is no port: need 1 to 65535, as in 4791, udp:4791 or tcp:7174`,
		"--port udp:70000 file":                 `"udp:70000" is no port`,
		"--port udp:tcp:7 file":                 `"udp:tcp:7" is no port`,
		"--port 1,x file":                       `"x" is no port`,
		"--ethertype 0x5ff file":                `"0x5ff" is no EtherType`,
		"--id 65536 file":                       `"65536" is no number of 16 bits`,
		"--txn 4294967296 file":                 `"4294967296" is no number of 32 bits`,
		"--addr host file":                      `"host" is no address, and names are not looked up`,
		"--range 5-4 file":                      `"5-4" is no range`,
		"--nonsense file":                       "-nonsense",
		"--print file":                          "need -w FILE",
		"--force -i lo":                         "need -w FILE",
		"-w - --print file":                     "both would go to standard output",
		"-w f --json file":                      "add --print",
		"-w f -v -i lo":                         "--print",
		"--bpf p file":                          "name an interface with -i",
		"--bpf p -i any":                        "in place of any",
		"--op read --txn 3 file":                "--txn is of DG/RDMA and --op of iWARP: nothing is of both",
		"--stag 0x42 --id 4 -i lo":              "--id is of DG/RDMA and --stag of iWARP: nothing is of both",
		"--range 0 --stag 1 --port tcp:7 -i lo": "--range is of DG/RDMA and --stag of iWARP: nothing is of both",
	} {
		code, stdout, stderr := runDecode(t, nil, strings.Fields(args)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: code %d, %q, %q", args, code, stdout, stderr)
		}
	}
}

// TestDecodeOfTheOtherProtocol: filters of one protocol, and frames of the other alone, are told as why nothing is shown.
func TestDecodeOfTheOtherProtocol(t *testing.T) {
	const bounds, single = iwarpCaptures + "term-write-bounds.pcap", captures + "udp-single.pcap"
	const noDGRDMA, noIWARP = "%s is of DG/RDMA, and all frames are of iWARP\n", "%s is of iWARP, and all frames are of DG/RDMA\n"
	damaged := readCapture(t, "udp-single")
	for _, c := range []struct{ args, flag, want string }{
		{"--id 1 " + bounds, "--id", noDGRDMA},
		{"--txn 1 -w " + os.DevNull + " " + bounds, "--txn", noDGRDMA},
		{"--range 0 --stats " + bounds, "--range", noDGRDMA},
		{"--op read " + single, "--op", noIWARP},
		{"--stag 1 --json " + single, "--stag", noIWARP},
		// What there is does not fit, or there is nothing, or it is not known what there is.
		{"--op read " + bounds, "", ""},
		{"--txn 7 " + single, "", ""},
		{"--txn 7 " + bounds + " " + single, "", ""},
		{"--addr 10.0.0.9 " + single, "", ""},
		{"--txn 7 --port tcp:9 " + bounds, "", ""},
		{"--op read --stats " + writeFile(t, "damaged", damaged[:len(damaged)-1]), "", ""},
	} {
		_, stdout, stderr := runDecode(t, nil, strings.Fields(c.args)...)
		_, said, _ := strings.Cut(stderr, " cut\n")
		said, _, _ = strings.Cut(said, "dgrdmacat decode: ") // what is wrong with the file
		if want := strings.ReplaceAll(c.want, "%s", c.flag); stdout != "" || said != want {
			t.Errorf("%s: %s%s; want behind the summary %q", c.args, stdout, stderr, want)
		}
	}
}
