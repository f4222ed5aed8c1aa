package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// tooShort is what bench says where nothing was done in its time, as a busy machine makes it.
const tooShort = "in --seconds: give it more"

// runFor runs a command. A measurement that was too short is made again, some times: its server has to be there still.
func runFor(t *testing.T, ctx context.Context, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	_, code, stdout, stderr = runTimes(ctx, args...)
	return code, stdout, stderr
}

// runTimes is runFor that says how often the command ran: its server tells of each time.
func runTimes(ctx context.Context, args ...string) (times, code int, stdout, stderr string) {
	for times < 5 {
		times++
		if code, stdout, stderr = runOnce(ctx, args...); !strings.Contains(stderr, tooShort) {
			break
		}
	}
	return times, code, stdout, stderr
}

func runOnce(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(ctx, args, &stdio{strings.NewReader(""), &out, &err})
	return code, out.String(), err.String()
}

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		args           string
		code           int
		stdout, stderr string // what they contain; "" means nothing at all
	}{
		{"", exitUsage, "", "usage: dgrdmacat"},
		{"-h", exitOK, "usage: dgrdmacat", ""},
		{"help", exitOK, "demo", ""},
		{"help help", exitOK, "usage: dgrdmacat", ""},
		{"help -h", exitOK, "usage: dgrdmacat", ""},
		{"help bench", exitOK, "--compare PROTOCOLS", ""},
		{"sned", exitUsage, "", "dgrdmacat: no command \"sned\": did you mean send? \"dgrdmacat\" lists its commands\n"},
		{"help lisen", exitUsage, "", ": did you mean listen? "},
		{"man benhc", exitUsage, "", ": did you mean bench? "},
		{"nonsense", exitUsage, "", "dgrdmacat: no command \"nonsense\"; \"dgrdmacat\" lists its commands\n"},
		{"help nonsense", exitUsage, "", "dgrdmacat: no command \"nonsense\"; \"dgrdmacat\" lists its commands\n"},
		{"version", exitOK, "dgrdmacat ", ""},
		{"--version", exitOK, "revision ", ""},
		{"-v", exitOK, runtime.Version() + "\n", ""},
		{"version stray", exitUsage, "", `unexpected argument "stray"`},
		{"help version", exitOK, "dgrdma_build_info", ""},
		{"man version", exitOK, ".TH DGRDMACAT-VERSION 1", ""},
		{"demo -h", exitOK, "(default 5)", ""},
		{"demo --lossy -loss 41", exitUsage, "", `demo: --loss "41": need percent, 0 to 40, such as 1 or 0.5%;`},
		{"demo -size 0", exitUsage, "", "need 1M to 1G, whole MiB"},
		{"demo -what", exitUsage, "", "-what"},
		{"demo stray", exitUsage, "", `unexpected argument "stray"`},
		{"demo -loss 10", exitUsage, "", "--loss belongs to --lossy"},
		{"demo --lossy --seed 3 --reorder 91", exitUsage, "", `--reorder "91": need percent, 0 to 90`},
		{"demo --lossy --duplicate 101%", exitUsage, "", `--duplicate "101%": need percent, 0 to 100`},
		{"demo -size 1M", exitOK, "1 transaction, 1 completion word", ""},
		{"demo -lossy -size 3M -loss 30 -duplicate 50 -reorder 50% -seed 7", exitOK, "every byte verified", ""},
		{"bench -h", exitOK, "both ends in this process, over loopback", ""},
		{"bench --serve udp --to udp", exitUsage, "", "are the two ends"},
		{"bench --once", exitUsage, "", "belong to --serve"},
		{"bench --serve nonsense --seconds 3", exitUsage, "", "--seconds is for the client: give it beside --to"},
		{"bench --serve nonsense --link --buffers 64", exitUsage, "", "--buffers is for the client"},
		{"ping --serve nonsense -n 3", exitUsage, "", "-n is for the client: give it beside --to"},
		{"ping --serve nonsense -c 3", exitUsage, "", "-c is for the client: give it beside --to"},
		{"ping --serve nonsense --interval 1s", exitUsage, "", "--interval is for the client"},
		{"ping --link --serve nonsense --size 1k", exitUsage, "", "--size is for the client of a link"},
		{"ping --to udp -c 0", exitUsage, "", "-n 0: need 1 to"},
		{"ping --to udp --size 3", exitUsage, "", "--size 3: need 4 to 1G"},
		{"ping --to udp --size 2G", exitUsage, "", "--size 2G: need 4 to 1G"},
		{"ping --to udp --link --size 2M", exitUsage, "", "--size 2M: messages of links have at most 2097151 bytes"},
		{"ping --to ocpi-udp-rdma:127.0.0.1;9;4294000000.2.16 --size 1M", exitUsage, "", "would go into the last of the 4294000000 bytes of memory"},
		{"ping --to udp --interval -1s", exitUsage, "", "--interval -1s: need 0, or up to an hour"},
		{"ping --to ocpi-udp-rdma:127.0.0.1;9;4096.2.16 --interval 6s", exitUsage, "", "--interval 6s: need at most 5s, half of the time after which a silent client is given up"},
		{"ping --serve nonsense --json", exitUsage, "", "--json is for the client"},
		{"bench --local udp", exitUsage, "", "belongs to --to"},
		{"bench --to=", exitUsage, "", "--to is empty (unset variable?)"},
		{"bench --link --serve=", exitUsage, "", "--serve is empty (unset variable?)"},
		{"listen -o=", exitUsage, "", "-o \"\": the name of a file is empty"},
		{"serve --accept any --file=", exitUsage, "", "--file \"\": the name of a file is empty"},
		{"serve --accept any --dump=", exitUsage, "", "--dump \"\": the name of a file is empty"},
		{"report a -o=", exitUsage, "", "-o \"\": the name of a file is empty"},
		{"write --to x --text= --addr 0 --flag-addr 0", exitUsage, "", `write: --text "": it is empty (unset variable?); for a flag alone leave it out;`},
		{"write --to x --data= --addr 0 --flag-addr 0", exitUsage, "", `write: --data "": it is empty (unset variable?); for a flag alone leave it out;`},
		{"bench --json=maybe", exitUsage, "", `bench: --json "maybe": need true or false; "dgrdmacat bench -h" lists the flags`},
		{"bench --size", exitUsage, "", `bench: --size needs a value; "dgrdmacat bench -h"`},
		{"bench ---size 3", exitUsage, "", `bench: "---size" is no flag: need one or two dashes and a name;`},
		{"write --to x --file= --addr 0 --flag-addr 0", exitUsage, "", "--file \"\": the name of a file is empty"},
		{"bench --size 0", exitUsage, "", "need 1 to"},
		{"bench --stream", exitUsage, "", "belong to --link"},
		{"bench --link --peers 3", exitUsage, "", "bench: --peers is for transactions, and not for links: leave out one of it and --link\n"},
		{"bench --link --profile fpga", exitUsage, "", "bench: --profile is for transactions"},
		{"bench --link --verify full", exitUsage, "", "bench: --verify is for transactions"},
		{"bench --link --size 2097152", exitUsage, "", "at most 2097151 bytes"},
		{"bench --depth -1", exitUsage, "", "--depth -1: need 1 to 1048576, or 0, with which as many are outstanding as make up 4 MiB"},
		{"bench --seconds 0", exitUsage, "", "--seconds 0"},
		{"bench --seconds abc", exitUsage, "", `--seconds "abc": need seconds such as 10 or 0.5, or a time such as 500ms;`},
		{"bench --seconds=", exitUsage, "", `--seconds "": need seconds`},
		{"bench --seconds NaN", exitUsage, "", `--seconds "NaN": need seconds`},
		{"bench --seconds 1e300", exitUsage, "", `--seconds "1e300": need seconds`},
		{"bench --seconds -1", exitUsage, "", "--seconds -1: need more than 0, at most 86400"},
		{"bench --seconds 25h", exitUsage, "", "--seconds 90000: need more than 0, at most 86400"},
		{"bench --seconds 10ms", exitOK, " MB/s (", ""},
		{"bench --seconds .2", exitOK, " MB/s (", ""},
		{"bench --seconds 0.2s --link", exitOK, " MB/s (", ""},
		{"help bench", exitOK, "(default 3)", ""},
		{"bench --peers many", exitUsage, "", `--peers "many": need a whole number;`},
		{"demo --seed -1", exitUsage, "", `--seed "-1": need a whole number from 0 on;`},
		{"top --interval 5 :", exitUsage, "", `:: port "": need a number from 0 to 65535`},
		{"top --interval 1m30 :9", exitUsage, "", `--interval "1m30": need seconds such as 10 or 0.5, or a time such as 500ms;`},
		{"write --interval 5", exitUsage, "", "write to whom?"},
		{"write --interval -0.5 --to udp --flag-addr 0", exitUsage, "", "--interval -500ms: need seconds"},
		{"decode --count -1 -", exitUsage, "", "--count -1: need 0 or more"},
		{"decode -i lo --op read --port 7471", exitUsage, "", "add --port tcp:PORT"},
		{"decode -i lo --stag 1", exitUsage, "", "add --port tcp:PORT"},
		{"bench --mtu 1500 --serve udp:127.0.0.1?mtu=9000", exitUsage, "", "--mtu 1500, and the endpoint string says mtu=9000: say it once"},
		{"bench --profile fpga --serve udp:127.0.0.1?profile=opencpi", exitUsage, "", "--profile fpga, and the endpoint string says profile=opencpi: say it once"},
		{"bench --profile fpga --to ocpi-udp-rdma:127.0.0.1;9;134217728.2.16?profile=opencpi", exitUsage, "", "say it once"},
		{"bench --link --window 7 --serve udp:127.0.0.1?window=8", exitUsage, "", "--window 7, and the endpoint string says window=8"},
		{"bench --gso off --serve ether:lo", exitUsage, "", "--gso: dgrdma: endpoint string says gso=off, which means something over UDP and nothing over Ethernet"},
		{"write --to ocpi-udp-rdma:127.0.0.1;9;4096.2.16?profile=opencpi --profile fpga --flag-addr 0", exitUsage, "", "--profile fpga, and the endpoint string says profile=opencpi: say it once"},
		{"write --to ocpi-udp-rdma:127.0.0.1;9;4096.2.16 --local ocpi-udp-rdma:127.0.0.1;0;64.3.16 --id 4 --flag-addr 0", exitUsage, "", "--id 4, and the endpoint string has the id 3: say it once"},
		{"bench --peers 0", exitUsage, "", "need 1 to 16384"},
		{"bench --verify some", exitUsage, "", "sample, full or off"},
		{"bench --compare quic", exitUsage, "", "go run -C tests/quic"},
		{"bench --compare udp", exitUsage, "", `"udp" is none of raw, tcp, tls`},
		{"bench --compare tcp,", exitUsage, "", `"" is none of raw, tcp, tls`},
		{"bench --compare tcp,tls,tcp", exitUsage, "", "tcp is there twice"},
		{"bench --compare raw --bidir", exitUsage, "", "--compare raw goes to the server alone"},
		{"bench --compare tcp,raw --reverse", exitUsage, "", "--compare raw goes to the server alone"},
		{"bench --serve udp --compare tcp", exitUsage, "", "--compare is for the client"},
		{"bench --loss 50.1", exitUsage, "", `--loss "50.1": need percent, 0 to 50, such as 1 or 0.5%;`},
		{"bench --loss 1ms", exitUsage, "", `--loss "1ms": need percent`},
		{"bench --loss 0.05", exitUsage, "", `bench: --loss "0.05": is that 0.05% or 5%? Give it with its sign;`},
		{"demo --lossy --loss 0.05", exitUsage, "", `demo: --loss "0.05": is that 0.05% or 5%? Give it with its sign;`},
		{"demo --lossy --reorder 0.5", exitUsage, "", `--reorder "0.5": is that 0.5% or 50%?`},
		{"demo --size 64", exitUsage, "", "--size 64: need 1M to 1G, whole MiB"},
		{"demo --size 1500k", exitUsage, "", "need 1M to 1G, whole MiB"},
		{"bench --loss 51%", exitUsage, "", "need percent"},
		{"bench --loss NaN", exitUsage, "", "need percent"},
		{"bench --loss 1 --compare tcp", exitUsage, "", "go run ./tests/rows loss-1"},
		{"bench --seed 3", exitUsage, "", "--seed belongs to --loss"},
		{"bench --reverse --bidir", exitUsage, "", "--reverse is one way and --bidir both"},
		{"bench --reverse --link", exitUsage, "", "bench: --reverse is for transactions"},
		{"bench -i 1ms", exitUsage, "", "-i 1ms: need 10ms to 1h"},
		{"bench -i -1s", exitUsage, "", "-i -1s: need 10ms to 1h"},
		{"bench -i 0.001", exitUsage, "", "-i 1ms: need 10ms to 1h"},
		{"bench -i 0.02 --seconds 0.05", exitOK, " MB/s  ", ""},
		{"ping -i 1e4 --to udp", exitUsage, "", `-i "1e4": need seconds`},
		{"ping -i 7200 --to udp", exitUsage, "", "--interval 2h0m0s: need 0, or up to an hour"},
		{"bench -R", exitUsage, "", "there is no flag -R: here that is --reverse;"},
		{"bench -b 1G", exitUsage, "", "there is no flag -b: here that is --rate, as in --rate 1Gbit;"},
		{"bench -c 10.0.0.2", exitUsage, "", "there is no flag -c: here that is --to, as in --to udp:HOST:PORT;"},
		{"ping -s 100 --to udp", exitUsage, "", "there is no flag -s: here that is --size;"},
		{"listen -l 9000", exitUsage, "", "there is no flag -l: here that is the command listen: dgrdmacat listen udp:9000;"},
		{"send -u 10.0.0.2 9000", exitUsage, "", "there is no flag -u: here that is the URL, udp:9000;"},
		{"bench --revrese", exitUsage, "", "there is no flag --revrese: did you mean --reverse? "},
		{"bench -n 10M", exitUsage, "", "there is no flag -n: here that is --seconds: runs end by time;"},
		{"decode -r trace.pcap", exitUsage, "", "there is no flag -r: here that is the FILE alone, as in decode trace.pcap;"},
		{"report -r trace.pcap", exitUsage, "", "there is no flag -r: here that is the FILE alone;"},
		{"rping -d -c -a ::1", exitUsage, "", "there is no flag -d: here that is -v;"},
		{"bench -Z", exitUsage, "", "there is no flag -Z; \"dgrdmacat bench -h\" lists the flags\n"},
		{"bench --size 64KiB --seconds 0.05", exitOK, " of 65536 bytes outstanding", ""},
		{"bench --size 64KB", exitUsage, "", "powers of ten, or of two? Here sizes have those of two: say 64K;"},
		{"bench --size 64iB", exitUsage, "", "need a number of bytes such as 4096, 64k or 64KiB, 1M or 4G;"},
		{"bench --size B", exitUsage, "", "need a number of bytes"},
		{"bench --rate 80Mbps --seconds 0.05", exitOK, " Gbit/s), ", ""},
		{"bench --warm-up -1s", exitUsage, "", "--warm-up -1s: need up to an hour"},
		{"bench --compare tcp --rate 1Gbit", exitUsage, "", "leave out --rate, -i and --sweep"},
		{"bench --sweep 64", exitUsage, "", `--sweep "64": need sizes from 1 to 1G, such as 64..1M;`},
		{"bench --sweep 64..1", exitUsage, "", "need the smaller size first: 1..64"},
		{"bench --sweep 0..1", exitUsage, "", "need sizes from 1 to 1G"},
		{"bench --sweep 64..1M --size 5", exitUsage, "", "--sweep has the sizes: leave out --size"},
		{"bench --sweep 64..1M -i 1s", exitUsage, "", "give one of them"},
		{"bench --link --sweep 1M..2M", exitUsage, "", "--sweep 1M..2M: messages of links have at most 2097151 bytes"},
		{"bench --sweep 1M..1G --depth 100", exitUsage, "", "depth 100 and size 67108864 need 6710894592 bytes of memory, and an endpoint has at most 4G"},
		{"bench --serve udp:127.0.0.1 --sweep 64..128", exitUsage, "", "--sweep is for the client"},
		{"bench --gso maybe", exitUsage, "", `--gso "maybe": need on or off`},
		{"bench --sockbuf 1", exitUsage, "", `--sockbuf "1": need default, max, or 4096`},
		{"bench --window 16384", exitUsage, "", "need 1 to 16383"},
		{"bench --mtu 10", exitUsage, "", "need 128"},
		{"bench --profile best", exitUsage, "", `--profile "best": need native, fpga, opencpi or opencpi-legacy`},
		{"bench --profile opencpi2", exitUsage, "", `--profile "opencpi2": need native, fpga, opencpi or opencpi-legacy`},
		{"bench --depth 100000 --size 100000", exitUsage, "", "peers 1, depth 100000 and size 100000 need 10003605504 bytes of memory, and an endpoint has at most 4G"},
		{"bench --size 136M --verify off --seconds 0.5", exitOK, "transaction of 142606336 bytes outstanding", ""},
		{"bench --serve nonsense", exitUsage, "", "--serve"},
		{"bench --serve udp?speed=high", exitUsage, "", `option "speed"`},
		{"bench --serve udp --memory 100", exitUsage, "", "--memory 100: need 8192 to 4G"},
		{"bench --memory 1G", exitUsage, "", "--memory belongs to --serve"},
		{"bench --serve udp:192.0.2.1", exitError, "", "no interface of this machine"},
		{"bench --to udp:7100", exitUsage, "", "--to udp:7100: need udp:HOST:PORT, or what the other side prints\n"},
		{"bench --to ocpi-ether-rdma:eth0/02:00:00:00:00:01;134217728.2.16", exitUsage, "", "Add --local ether:NAME"},
		{"bench --compare tcp --to ocpi-ether-rdma:eth0/02:00:00:00:00:01;134217728.2.16", exitUsage, "", "no TCP on bare Ethernet"},
		{"bench --compare raw,tls --to ocpi-ether-rdma:eth0/02:00:00:00:00:01;134217728.2.16", exitUsage, "", "--compare tls: there is no TCP"},
		{"bench --local ether:eth0 --to ocpi-udp-rdma:127.0.0.1;7100;134217728.2.16", exitUsage, "", "another wire"},
		{"report -h", exitOK, "dgrdmacat report trace.pcap -o report.html", ""},
		{"report", exitUsage, "", "one FILE, or - for standard input"},
		{"report a b -o c", exitUsage, "", "one FILE"},
		{"report a --json --flow 1", exitUsage, "", "--json draws nothing"},
		{"report a -o b --flow -1", exitUsage, "", `--flow "-1": flows have numbers from 1`},
		{"report a -o b --flow 0", exitUsage, "", `--flow "0": flows have numbers from 1`},
		{"report a -o b --port 70000", exitUsage, "", `"70000" is no port`},
		{"report a -o b --ethertype 5", exitUsage, "", "need 0x0600 to 0xffff"},
		{"report nothing.pcap --json", exitError, "", "nothing.pcap: no such file"},
		{"report . --json", exitError, "", "is a directory"},
		{"report /dev/null --json", exitError, "", "report: /dev/null: it is empty, and a capture has at least a header\n"},
		{"report run_test.go --json", exitError, "", "report: run_test.go: neither pcap nor pcapng\n"},
		{"listen --url-file . udp:127.0.0.1", exitError, "", ". is a directory: name a file in it, as in FILE"},
		{"listen -h", exitOK, "replaces %d (or %03d) in FILE", ""},
		{"listen udp udp", exitUsage, "", `unexpected argument "udp"`},
		{"listen nonsense", exitUsage, "", "URL: "},
		{"listen --force", exitUsage, "", "--force belongs to -o"},
		{"url --dialect short ocpi-udp-rdma:10.0.0.2;7100;64.2.16?window=0", exitUsage, "udp:10.0.0.2:7100?window=0", "endpoint string says window=0"},
		{"listen --json", exitUsage, "", "add -o FILE"},
		{"listen --keep --duplex", exitUsage, "", "there is but one standard input"},
		{"listen udp?speed=high", exitUsage, "", `option "speed"`},
		{"send ocpi-udp-rdma:0.0.0.0;9000;64.2.16", exitUsage, "", "URL ocpi-udp-rdma:0.0.0.0;9000;64.2.16: 0.0.0.0 stands for all addresses of a machine: name the one"},
		{"listen udp?ring=on", exitUsage, "", "URL: dgrdma: endpoint string says ring=on, which means something over Ethernet and nothing over UDP"},
		{"listen camera", exitUsage, "", "give one such as udp:7100 or ether:eth0"},
		{"listen udp:192.0.2.1", exitError, "", "no interface of this machine"},
		{"send -h", exitOK, "neither the name of a file nor its mode", ""},
		{"send", exitUsage, "", "need [FILE] URL"},
		{"send a b c", exitUsage, "", "need [FILE] URL"},
		{"send udp:127.0.0.1", exitUsage, "", "URL udp:127.0.0.1: need udp:HOST:PORT, or what the other side prints\n"},
		{"send nonsense", exitUsage, "", "URL: "},
		{"send f camera", exitUsage, "", "; give udp:HOST:PORT, or the URL that the other side printed\n"},
		{"send f ocpi-udp-rdma:127.0.0.1;9;134217728.2.16?ring=on", exitUsage, "", "URL: dgrdma: endpoint string says ring=on"},
		{"send --json --duplex ocpi-udp-rdma:127.0.0.1;9;134217728.2.16", exitUsage, "", "both want standard output"},
		{"send ocpi-ether-rdma:eth0/02:00:00:00:00:01;134217728.2.16", exitUsage, "", "Add --local ether:NAME"},
		{"send --local ether:eth0 ocpi-udp-rdma:127.0.0.1;9;134217728.2.16", exitUsage, "", "another wire"},
		{"man ping", exitOK, ".TH DGRDMACAT-PING 1", ""},
		{"man", exitOK, ".BR dgrdmacat\\-bench (1)", ""},
		{"man nonsense", exitUsage, "", `no command "nonsense"`},
		{"completion", exitUsage, "", "which shell"},
		{"completion tcsh", exitUsage, "", `no completion for "tcsh"`},
		{"completion bash", exitOK, "complete -o filenames -F _dgrdmacat dgrdmacat", ""},
		{"completion fish", exitOK, "-l busy-poll -d 'receive without sleeping'", ""},
		{"bench --metrics nonsense", exitUsage, "", "--metrics nonsense: need HOST:PORT"},
		{"ping --to ocpi-udp-rdma:127.0.0.1;9;4096.2.16 --metrics 192.0.2.1:1", exitError, "", "--metrics 192.0.2.1:1: listen tcp"},
		{"top -h", exitOK, "--interval TIME", ""},
		{"top", exitUsage, "", "top of what? Give the ADDR or URL"},
		{"top a b", exitUsage, "", "top of what? Give the ADDR or URL"},
		{"top name", exitUsage, "", "name: need HOST:PORT"},
		{"top :99999", exitUsage, "", "need a number from 0 to 65535"},
		{"top ftp://127.0.0.1:9100", exitUsage, "", "need http://HOST:PORT"},
		{"top :9 --interval 1ms", exitUsage, "", "need 100ms to 1h"},
		{"top :9 --count -1", exitUsage, "", "--count -1"},
		{"top 127.0.0.1:9", exitError, "", "nothing listens at 127.0.0.1:9; start what is to be watched with --metrics 127.0.0.1:9"},
		{"wireshark stray", exitUsage, "", `unexpected argument "stray"`},
		{"wireshark --force", exitUsage, "", "--force belongs to --install"},
		{"ping", exitUsage, "", "give --serve or --to, as in --to udp:HOST:PORT\n"},
		{"ping --op read", exitUsage, "", "give --serve or --to, as in --to tcp:HOST:PORT\n"},
		{"ping udp:10.0.0.2:7100", exitUsage, "", `unexpected argument "udp:10.0.0.2:7100": did you mean --to udp:10.0.0.2:7100, or --serve?`},
		{"bench udp:10.0.0.2:7100", exitUsage, "", "did you mean --to udp:10.0.0.2:7100, or --serve?"},
		{"bench 10.0.0.2", exitUsage, "", "unexpected argument \"10.0.0.2\": did you mean --to udp:10.0.0.2:PORT, or --serve?\n"},
		{"ping fd00::1", exitUsage, "", "did you mean --to udp:[fd00::1]:PORT, or --serve?\n"},
		{"ping localhost:7100", exitUsage, "", "did you mean --to udp:localhost:7100, or --serve?\n"},
		{"write 10.0.0.2:7100 hello", exitUsage, "", "unexpected argument \"10.0.0.2:7100\": did you mean --to udp:10.0.0.2:7100?\n"},
		{"write udp:10.0.0.2:7100 hello", exitUsage, "", "did you mean --to udp:10.0.0.2:7100?\n"},
		{"bench camera", exitUsage, "", "unexpected argument \"camera\"\n"},
		{"bench 7100", exitUsage, "", "unexpected argument \"7100\"\n"},
		{"rping 10.0.0.2", exitUsage, "", "unexpected argument \"10.0.0.2\"\n"},
		{"bench --to 10.0.0.2:7100", exitUsage, "", "bench: --to 10.0.0.2:7100: did you mean udp:10.0.0.2:7100?\n"},
		{"send /dev/null localhost:9000", exitUsage, "", "send: URL localhost:9000: did you mean udp:localhost:9000?\n"},
		{"send 10.0.0.2 9000", exitUsage, "", "send: URL 9000: did you mean udp:10.0.0.2:9000?\n"},
		{"send /dev/null fd00::1", exitUsage, "", "send: URL fd00::1: did you mean udp:[fd00::1]:PORT?\n"},
		{"send udp:10.0.0.2:9000 /dev/null", exitUsage, "", "send: the URL comes last: send /dev/null udp:10.0.0.2:9000\n"},
		{"listen 9000", exitUsage, "", "listen: URL 9000: did you mean udp:9000?\n"},
		{"serve --accept any 127.0.0.1:7100", exitUsage, "", "did you mean udp:127.0.0.1:7100?\n"},
		{"demo udp:10.0.0.2:7100", exitUsage, "", "unexpected argument \"udp:10.0.0.2:7100\"\n"},
		{"bench --rate 1G", exitUsage, "", "bits or bytes per second? Say 1Gbit or 1GB;"},
		{"bench --rate 100/s", exitUsage, "", "bits or bytes per second? Say 100bit or 100B;"},
		{"bench --rate much", exitUsage, "", "need bits or bytes per second, such as"},
		{"bench --sweep 16k..1k", exitUsage, "", "need the smaller size first: 1k..16k;"},
		{"bench --serve nonsense -t 3", exitUsage, "", "-t is for the client"},
		{"bench -t 0.2 --size 4k", exitOK, " in 0.", ""},
		{"ping --serve nonsense -i 1s", exitUsage, "", "-i is for the client"},
		{"ping --serve nonsense -v", exitUsage, "", "-v is for the client"},
		{"ping --to udp -v --json", exitUsage, "", "--json prints one object: leave out -v"},
		{"ping --to udp:127.0.0.1:9 --wait 0s", exitUsage, "", "--wait 0s: need more than 0, and an hour at most"},
		{"ping --to udp:127.0.0.1:9 --wait 61m", exitUsage, "", "--wait 1h1m0s: need more than 0, and an hour at most"},
		{"ping --serve udp:127.0.0.1 --wait 2s", exitUsage, "", "--wait is for the client: give it beside --to"},
		{"ping --to udp --serve udp", exitUsage, "", "--serve and --to are the two ends"},
		{"ping --to udp --once", exitUsage, "", "belong to --serve"},
		{"ping --to udp --url-file " + filepath.Join(t.TempDir(), "f"), exitUsage, "", "belong to --serve"},
		{"ping --serve udp?gibeup=1s", exitUsage, "", `--serve: dgrdma: endpoint string has the option "gibeup"; there are`},
		{"listen udp?mtu=x", exitUsage, "", "mtu=x: need 128 to 65535 bytes"},
		{"serve udp?giveup=x --accept any", exitUsage, "", "URL: dgrdma: endpoint string says giveup=x: need a time"},
		{"write --to ocpi-udp-rdma:127.0.0.1;9;4096.2.16?window=0 --addr 0 --text x", exitUsage, "", "--to: dgrdma: endpoint string says window=0"},
		{"bench --to ocpi-udp-rdma:127.0.0.1;9;4096.2.16 --local udp?gso=perhaps", exitUsage, "", "--local: dgrdma: endpoint string says gso=perhaps"},
		{"ping --to udp -n 0", exitUsage, "", "-n 0"},
		{"ping --to udp", exitUsage, "", "need udp:HOST:PORT, or what the other side prints\n"},
		{"ping --to ether:02:00:00:00:00:01", exitUsage, "", "over Ethernet need the complete string that the other side prints\n"},
		{"ping --serve udp --local udp", exitUsage, "", "belongs to --to"},
	} {
		t.Run(strings.ReplaceAll(c.args, " ", "_"), func(t *testing.T) {
			code, stdout, stderr := runFor(t, context.Background(), strings.Fields(c.args)...)
			if code != c.code {
				t.Errorf("exit code %d, want %d; %s", code, c.code, stderr)
			}
			for _, s := range []struct{ name, got, want string }{{"stdout", stdout, c.stdout}, {"stderr", stderr, c.stderr}} {
				if s.want == "" && s.got != "" || !strings.Contains(s.got, s.want) {
					t.Errorf("%s %q, want %q", s.name, s.got, s.want)
				}
			}
		})
	}
}

func TestDemoSaysWhatWasLostAndRecovered(t *testing.T) {
	code, out, stderr := runFor(t, context.Background(), "demo", "--lossy", "-size", "8M", "-loss", "10")
	if code != exitOK {
		t.Fatal(stderr)
	}
	m := regexp.MustCompile(`(\d+) datagrams out, (\d+) lost;.*\nrecovered +(\d+) frames sent again`).FindStringSubmatch(out)
	if m == nil || m[2] == "0" || m[3] == "0" {
		t.Errorf("no losses or no repairs at 10 %% loss:\n%s", out)
	}
}

func TestInterruptedDemoFails(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	code, out, stderr := runFor(t, ctx, "demo", "-size", "64M")
	if code != exitInterrupted || !strings.Contains(stderr, "interrupted") || strings.Contains(out, "verified") {
		t.Errorf("code %d, %q, %q", code, out, stderr)
	}
}

// TestOutputThatCannotBeWritten: nothing ends well if what it had to say is lost.
func TestOutputThatCannotBeWritten(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	const peer = "ocpi-udp-rdma:127.0.0.1;9;4096.2.16"
	for _, args := range []string{
		"help", "help top", "man", "man top", "completion bash", "wireshark", "url " + peer, "url --json " + peer, "url --dialect spec " + peer,
		"demo --size 1M", "demo --lossy --size 1M", "decode " + captureFile("udp-many"), "decode -w - " + captureFile("udp-many"), "report --json " + captureFile("udp-many"),
		"bench --seconds 0.2", "bench --seconds 0.2 --json", "bench --seconds 0.2 --link", "bench --seconds 0.2 --link --json",
		"write --json --to " + peer + "?giveup=1ms --flag-addr 0", "serve --json --accept any --for 1ms udp:127.0.0.1",
	} {
		var stderr bytes.Buffer
		code := run(t.Context(), strings.Fields(args), &stdio{strings.NewReader(""), full, &stderr})
		if code != exitError || !strings.Contains(stderr.String(), "write /dev/full: no space left on device\n") {
			t.Errorf("%s: code %d, %q", args, code, stderr.String())
		}
	}
}
