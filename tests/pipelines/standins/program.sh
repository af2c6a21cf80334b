#!/bin/sh
# Stands for a program of the pipelines, as conda and containers wrap it: the work is done in a child of a script.
# A program named in STANDIN_STUCK does not end, one in STANDIN_FAILS
# fails. The others say what they do, and write the files that they name.
name=${0##*/}
echo "$name $*" >> "log.$name"
case " $STANDIN_STUCK " in
*" $name "*)
    sleep 3600
    exit 3
    ;;
esac
case " $STANDIN_FAILS " in
*" $name "*)
    case "$*" in */vsistdin/*) cat > /dev/null ;; esac
    echo "$name does not feel like it" >&2
    exit 4
    ;;
esac
if [ "$name" = curl ]; then
    echo "the download of $*"
    exit 0
fi
for argument in "$@"; do
    case "$argument" in
    /vsistdin/) piped=$(cat) ;;
    *.tif | *.vrt | *.gpkg) [ -e "$argument" ] || echo "$name made this" > "$argument" ;;
    esac
done
echo "$name is done${piped:+ with $piped}"
