# Completion of jlr for fish. Written by `jlr completion fish`.
# click's own script cuts a description at its first comma.

function _jlr_completion
    set -l response (env _JLR_COMPLETE=fish_complete COMP_WORDS=(commandline -cp) \
        COMP_CWORD=(commandline -t) jlr 2>/dev/null)
    for completion in $response
        set -l metadata (string split -m 1 "," -- $completion)
        switch $metadata[1]
            case dir
                __fish_complete_directories $metadata[2]
            case file
                __fish_complete_path $metadata[2]
            case plain
                echo $metadata[2]
        end
    end
end

complete --no-files --command jlr --arguments "(_jlr_completion)"
