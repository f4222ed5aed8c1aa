package metrics

import (
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// module is the one whose version is shown.
const module = "github.com/dgrdma/dgrdma"

// buildInfo is always 1.
var buildInfo = func() prometheus.Metric {
	info, _ := debug.ReadBuildInfo()
	version, revision, goVersion := buildOf(info)
	return prometheus.MustNewConstMetric(
		prometheus.NewDesc("dgrdma_build_info", "Always 1; the labels say what was built.", []string{"version", "revision", "goversion"}, nil),
		prometheus.GaugeValue, 1, version, revision, goVersion)
}()

// buildOf finds the version of this module in a program, which may be its own or
// another one's, and the revision, which is the program's, if it is its own.
func buildOf(info *debug.BuildInfo) (version, revision, goVersion string) {
	if info == nil {
		return "unknown", "unknown", "unknown"
	}
	version, revision, goVersion = "unknown", "unknown", info.GoVersion
	if info.Main.Path == module {
		version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	for _, d := range info.Deps {
		if d.Path == module {
			version = d.Version
		}
	}
	return version, revision, goVersion
}
