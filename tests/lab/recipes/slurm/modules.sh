# A site's `module`, which is a shell function: `module load jupyter` puts /opt/jupyter on the PATH.
module() {
  [ "$1" = load ] && shift
  for jlr_module; do
    [ -d "/opt/$jlr_module" ] || { echo "no module $jlr_module" >&2; return 1; }
    PATH=/opt/$jlr_module/bin:$PATH
  done
}
